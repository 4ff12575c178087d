#include "launcher/jobs/checks/remote_sets.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/jobs/checks/data_program.h"
#include "lib/recipe/load.h"
#include "lib/recipe/remote_shards.h"

namespace scaletrain::launcher {

recipe::Recipe with_remote_shards(recipe::Recipe recipe, const std::string& file) {
  const recipe::Recipe as_written = recipe;
  const auto shards_of = [&as_written](const std::string& name) {
    const std::string found = ask_data_program({.arguments = {"ls", "--shards", "--json", name},
                                                .key = "/data",
                                                .place = name,
                                                .what = "its shards"},
                                               &as_written);
    return nlohmann::json::parse(found).at("shards").get<std::vector<std::string>>();
  };
  if (!recipe::replace_remote_groups(recipe, shards_of)) return recipe;
  return recipe::parse_recipe(recipe::to_json(recipe), file + ", with the shards that were found",
                              {}, recipe.model.catalog);
}

}  // namespace scaletrain::launcher
