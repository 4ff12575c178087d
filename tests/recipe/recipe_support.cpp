#include "tests/recipe/recipe_support.h"

#include <fmt/ranges.h>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/temporary_folder.h"

namespace scaletrain::recipe {

std::string minimal_recipe(const std::string& more) {
  return "{\n"
         "\"model\": {\"name\": \"mlp\", \"num_classes\": 10},\n"
         "\"data\": {\"train\": {\"shards\": \"a.tar\"}},\n"
         "\"optimizer\": {\"name\": \"sgd\", \"lr\": 0.1},\n"
         "\"epochs\": 10" +
         (more.empty() ? "" : ",\n" + more) + "\n}\n";
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides) {
  try {
    (void)parse_recipe(text, "r.json", overrides);
  } catch (const core::RecipeError& error) {
    return error.what();
  }
  return "no error";
}

std::string load_error_of(const std::filesystem::path& path) {
  try {
    (void)load_recipe(path);
  } catch (const core::RecipeError& error) {
    return error.what();
  }
  return "no error";
}

std::string models_where(const std::function<bool(const Row& row)>& is_one) {
  std::vector<std::string> names;
  for (const Row& row : models().rows) {
    if (is_one(row)) names.push_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace scaletrain::recipe
