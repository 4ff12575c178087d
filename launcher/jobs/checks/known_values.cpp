#include "launcher/jobs/checks/known_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "launcher/jobs/checks/class_check.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/glob.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/url.h"
#include "lib/exchange/known_of_weights.h"
#include "lib/format/tokens/token_card.h"
#include "lib/format/weights/weight_files.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Written = nlohmann::ordered_json;

// Returns the member at `pointer`; nullptr if it is not written.
const Written* find_written(const Written& recipe, const std::string& pointer) {
  const Written::json_pointer place(pointer);
  return recipe.contains(place) && !recipe.at(place).is_null() ? &recipe.at(place) : nullptr;
}

std::string text_at(const Written& recipe, const std::string& pointer) {
  const Written* const found = find_written(recipe, pointer);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

std::string name_of_model(const Written& recipe) {
  const std::string name = text_at(recipe, "/model");
  return name.empty() ? text_at(recipe, "/model/name") : name;
}

std::vector<std::string> allowed_to_differ(const Written& recipe) {
  const Written* const found = find_written(recipe, "/model/weights/allow_other");
  if (found == nullptr) return {};
  if (found->is_string()) return {found->get<std::string>()};
  std::vector<std::string> names;
  for (const Written& name : *found) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

// Returns the files of /model/weights; nullopt if there are none on this machine.
std::optional<format::WeightFiles> weights_of(const Written& recipe) {
  std::string path = text_at(recipe, "/model/weights");
  if (path.empty()) path = text_at(recipe, "/model/weights/path");
  if (path.empty() || core::is_url(path)) return std::nullopt;
  try {
    return exchange::files_to_look_at(recipe::absolute_path(path));
  } catch (const core::Error&) {  // reported where the weights are needed
    return std::nullopt;
  }
}

// Collects --set of keys that the recipe leaves out, and shows them.
class Completion {
 public:
  explicit Completion(const Written& recipe)
      : recipe_(recipe), allowed_(allowed_to_differ(recipe)) {}

  // `pointer` as "/model/dim"; `name` as "allow_other" has it. A default that is the same is no
  // news.
  void add(const std::string& pointer, const std::string& name, const json& value,
           const json& standard) {
    if (value == standard || find_written(recipe_, pointer) != nullptr) return;
    if (core::matches_any(allowed_, name)) return;
    std::string key = pointer.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    const std::string text = core::json_text(value);
    sets_.push_back(fmt::format("{}={}", key, text));
    shown_.push_back(fmt::format("{}: {}", key, text));
  }

  // Returns the overrides added since the last call, logged with `place`, the file that they come
  // from.
  std::vector<std::string> take(const std::string& place) {
    if (!sets_.empty()) {
      core::log_line(core::printable(
          fmt::format("{}, as {} says", fmt::join(shown_, ", "), core::shown_path(place))));
    }
    shown_.clear();
    return std::exchange(sets_, {});
  }

 private:
  const Written& recipe_;
  std::vector<std::string> allowed_;
  std::vector<std::string> sets_, shown_;
};

json standard_of(const recipe::Row& row, const std::string& key) {
  for (const recipe::Option& option : row.options) {
    if (option.key == key) {
      return std::visit([](const auto& value) { return json(value); }, option.standard);
    }
  }
  return {};
}

bool has_key(const recipe::Row& row, const std::string& key) {
  return std::any_of(row.options.begin(), row.options.end(),
                     [&](const recipe::Option& option) { return option.key == key; });
}

// Completes the model section, if the recipe names the same model or none.
void complete_model(const Written& recipe, const exchange::KnownOfWeights& known,
                    Completion& completion) {
  const std::string given = name_of_model(recipe);
  const auto named = known.model.find("name");
  if (named == known.model.end() || !named->is_string()) return;
  const auto name = named->get<std::string>();
  const recipe::Row* const row = recipe::models().find(name);
  if (row == nullptr || (!given.empty() && given != name)) return;
  if (given.empty()) completion.add("/model/name", "name", name, json());
  for (const auto& [key, value] : known.model.items()) {
    const bool is_training_alone = key.find("drop") != std::string::npos;
    if (!has_key(*row, key) || is_training_alone) continue;
    completion.add("/model/" + key, key, value, standard_of(*row, key));
  }
}

bool are_in(const std::vector<double>& values, double lowest, double highest) {
  return std::all_of(values.begin(), values.end(),
                     [&](double value) { return value >= lowest && value <= highest; });
}

void complete_images(const Written& recipe, const exchange::KnownOfWeights& known,
                     Completion& completion) {
  const recipe::Data standard;
  constexpr double kLeastDeviation = 1e-9, kMostDeviation = 10;
  if (!known.mean.empty() && are_in(known.mean, 0, 1)) {
    completion.add("/data/normalize/mean", "mean", known.mean, standard.normalize.mean);
  }
  if (!known.std.empty() && are_in(known.std, kLeastDeviation, kMostDeviation)) {
    completion.add("/data/normalize/std", "std", known.std, standard.normalize.std);
  }
  if (known.eval_filter == "bilinear" || known.eval_filter == "bicubic") {
    completion.add("/data/eval_filter", "eval_filter", known.eval_filter, standard.eval_filter);
  }
  const Written* const size = find_written(recipe, "/data/image_size");
  const std::int64_t image_size = size != nullptr && size->is_number_integer()
                                      ? size->get<std::int64_t>()
                                      : standard.image_size;
  if (!known.crop || *known.crop >= 1) return;
  constexpr double kRounding = 1e-6;
  completion.add("/data/eval_resize", "crop",
                 static_cast<std::int64_t>(
                     std::floor(static_cast<double>(image_size) / *known.crop + kRounding)),
                 standard.eval_resize);
}

// Returns the card of the training tokens; nullopt if there is none on this machine.
std::optional<std::string> card_of_tokens(const recipe::Recipe& recipe) {
  if (recipe.data.train.tokens.empty()) return std::nullopt;
  std::optional<std::string> card = format::token_card_path(recipe.data.train.tokens.front());
  std::error_code ignored;
  if (!card || core::is_url(*card) || !fs::exists(*card, ignored)) return std::nullopt;
  return card;
}

// Returns the recipe with `sets`, to find its data; nullopt if it has other mistakes, which are
// reported when it is loaded.
std::optional<recipe::Recipe> try_to_load(const std::string& path, std::vector<std::string> sets,
                                          const std::string& more = "") {
  if (!more.empty()) sets.push_back(more);
  try {
    return recipe::load_recipe(path, sets);
  } catch (const core::RecipeError&) {
    return std::nullopt;
  }
}

void complete_vocabulary(const std::string& path, const std::vector<std::string>& sets,
                         Completion& completion, std::vector<std::string>& known) {
  const auto recipe = try_to_load(path, sets);
  if (!recipe) return;
  const auto card = card_of_tokens(*recipe);
  if (!card) return;
  const std::int64_t size =
      format::parse_token_card(
          core::read_file(*card, format::kMaxTokenCardBytes, core::ExitCode::kData), *card)
          .vocab_size;
  completion.add("/model/vocab_size", "vocab_size", size, json());
  for (std::string& set : completion.take(*card)) known.push_back(std::move(set));
}

// The number of classes is required: any number allows reading the other keys.
void complete_classes(const std::string& path, const std::vector<std::string>& sets,
                      const std::optional<exchange::KnownOfWeights>& weights,
                      Completion& completion, std::vector<std::string>& known) {
  const auto recipe = try_to_load(path, sets, "model.num_classes=2");
  if (!recipe) return;
  std::string place;
  json count;
  if (const auto classes = classes_of_training(*recipe)) {
    count = std::ssize(classes->names);
    place = classes->owner;
  } else if (weights && weights->model.contains("num_classes")) {
    count = weights->model.at("num_classes");
    place = weights->place;
  }
  if (count.is_null()) return;
  completion.add("/model/num_classes", "num_classes", count, json());
  for (std::string& set : completion.take(place)) known.push_back(std::move(set));
}

// Values found in the weights when the run began: the file may be gone when it resumes.
std::optional<exchange::KnownOfWeights> known_of_run(const std::string& path,
                                                     const std::vector<std::string>& sets) {
  auto recipe = try_to_load(path, sets);
  if (!recipe) recipe = try_to_load(path, sets, "model.num_classes=2");
  if (!recipe) return std::nullopt;
  const fs::path stored = fs::path(recipe->output) / "recipe.json";
  std::error_code ignored;
  if (!fs::exists(stored, ignored)) return std::nullopt;
  return exchange::known_of_recipe(stored);
}

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

std::vector<std::string> known_values(const std::string& path,
                                      const std::vector<std::string>& overrides) {
  const Written recipe = recipe::written_keys(path, overrides);
  if (!recipe.is_object()) return {};
  Completion completion(recipe);
  std::vector<std::string> known;
  std::optional<exchange::KnownOfWeights> weights;
  const bool has_weights = find_written(recipe, "/model/weights") != nullptr;
  if (const auto files = weights_of(recipe)) {
    weights = exchange::known_of_weights(*files);
  } else if (has_weights) {
    weights = known_of_run(path, overrides);
  }
  if (weights) {
    complete_model(recipe, *weights, completion);
    complete_images(recipe, *weights, completion);
    known = completion.take(weights->place);
  }
  // A custom worker's model may read images or tokens.
  const recipe::Row* const row = recipe::models().find(name_of_model(recipe));
  const bool may_have_tokens = row == nullptr || has_key(*row, "vocab_size");
  const bool may_have_classes = row == nullptr || !has_key(*row, "vocab_size");
  if (!has_weights && may_have_tokens && find_written(recipe, "/model/vocab_size") == nullptr) {
    complete_vocabulary(path, joined(overrides, known), completion, known);
  }
  if (may_have_classes && find_written(recipe, "/model/num_classes") == nullptr) {
    complete_classes(path, joined(overrides, known), weights, completion, known);
  }
  return known;
}

}  // namespace scaletrain::launcher
