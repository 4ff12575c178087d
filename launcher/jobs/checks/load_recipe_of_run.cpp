#include "launcher/jobs/checks/load_recipe_of_run.h"

#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/jobs/checks/class_check.h"
#include "launcher/jobs/checks/known_values.h"
#include "lib/core/text/glob.h"
#include "lib/exchange/compare_weights.h"
#include "lib/exchange/known_of_weights.h"
#include "lib/exchange/weights_classes.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {

recipe::Recipe load_recipe_of_run(const std::string& path,
                                  const std::vector<std::string>& overrides) {
  std::vector<std::string> completed = overrides;
  for (std::string& known : known_values(path, overrides)) completed.push_back(std::move(known));
  return recipe::load_recipe(path, completed);
}

namespace {

// Throws where the head of the weights has other classes than the training set, as rank 0 does when
// it loads them.
void check_classes_of_weights(const recipe::Recipe& recipe, const format::WeightFiles& files) {
  const recipe::Weights& weights = *recipe.model.weights;
  if (weights.new_head || core::matches_any(weights.allow_other, "class_names")) return;
  const auto training = classes_of_training(recipe);
  if (!training) return;
  const format::ClassNames theirs{exchange::classes_of_weights(files), weights.path};
  const exchange::KnownOfWeights known = exchange::known_of_weights(files);
  const std::int64_t rows = known.model.value("num_classes", std::ssize(theirs.names));
  const bool takes_head = rows == recipe.model.num_classes && std::ssize(training->names) <= rows;
  if (!takes_head || theirs.names.empty()) return;
  exchange::match_classes({training->names, "data.train"}, theirs);
}

}  // namespace

std::string weights_warning_of(const recipe::Recipe& recipe) {
  if (!recipe.model.weights) return "";
  const std::string& path = recipe.model.weights->path;
  const format::WeightFiles files = exchange::files_to_look_at(path);
  check_classes_of_weights(recipe, files);
  const std::string differences = exchange::differences_from_weights(recipe, files);
  return differences.empty() ? "" : exchange::weights_warning(path, differences);
}

}  // namespace scaletrain::launcher
