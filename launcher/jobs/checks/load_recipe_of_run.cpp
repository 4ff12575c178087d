#include "launcher/jobs/checks/load_recipe_of_run.h"

#include <utility>

#include "launcher/jobs/checks/known_values.h"
#include "lib/exchange/compare_weights.h"
#include "lib/exchange/known_of_weights.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {

recipe::Recipe load_recipe_of_run(const std::string& path,
                                  const std::vector<std::string>& overrides) {
  std::vector<std::string> completed = overrides;
  for (std::string& known : known_values(path, overrides)) completed.push_back(std::move(known));
  return recipe::load_recipe(path, completed);
}

std::string weights_warning_of(const recipe::Recipe& recipe) {
  if (!recipe.model.weights) return "";
  const std::string& path = recipe.model.weights->path;
  const std::string differences =
      exchange::differences_from_weights(recipe, exchange::files_to_look_at(path));
  return differences.empty() ? "" : exchange::weights_warning(path, differences);
}

}  // namespace scaletrain::launcher
