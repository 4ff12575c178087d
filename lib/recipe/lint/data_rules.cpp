// Lint rules of the data sets.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/core/text/url.h"
#include "lib/recipe/lint/rules.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {
namespace {

using Places = std::set<std::string>;

void gather_places(const Source& source, Places& places) {
  places.insert(source.shards.begin(), source.shards.end());
  places.insert(source.tokens.begin(), source.tokens.end());
  if (!source.folder.empty()) places.insert(source.folder);
  for (const Source& inner : source.sources) gather_places(inner, places);
}

Places places_of(const Source& source) {
  Places places;
  gather_places(source, places);
  return places;
}

// First place of `source` that `other` has too; "" if there is none.
std::string shared_place(const Source& source, const Source& other) {
  const Places places = places_of(source), others = places_of(other);
  const auto found =
      std::ranges::find_if(places, [&](const std::string& one) { return others.contains(one); });
  return found == places.end() ? "" : *found;
}

std::optional<LintAdvice> no_validation(const LintSubject& subject) {
  const Data& data = subject.recipe.data;
  if (data.val || !data.extra.empty()) return std::nullopt;
  return LintAdvice{"/data", "has no validation set", "hold out some samples as data.val"};
}

std::optional<LintAdvice> val_in_train(const LintSubject& subject) {
  const Data& data = subject.recipe.data;
  const std::string shared = shared_place(*data.val, data.train);
  if (shared.empty()) return std::nullopt;
  return LintAdvice{"/data/val", fmt::format("{} is in /data/train too", core::shown_path(shared)),
                    "hold it out of training"};
}

std::optional<LintAdvice> test_is_val(const LintSubject& subject) {
  const Data& data = subject.recipe.data;
  const std::string shared = shared_place(*data.test, *data.val);
  if (shared.empty()) return std::nullopt;
  return LintAdvice{"/data/test", fmt::format("{} is in /data/val too", core::shown_path(shared)),
                    "use other samples for data.test, or leave it out"};
}

bool is_augmented(const Source& source) {
  return !source.augment.empty() || std::ranges::any_of(source.sources, is_augmented);
}

std::optional<LintAdvice> no_augmentation(const LintSubject& subject) {
  const Recipe& recipe = subject.recipe;
  const Source& train = recipe.data.train;
  if (!train.tokens.empty() || recipe.model.weights || recipe.mix || is_augmented(train)) {
    return std::nullopt;
  }
  return LintAdvice{"/data/train/augment", "is empty, and the model starts from random weights",
                    R"(add transforms, for example ["random_resized_crop", "random_flip"])"};
}

}  // namespace

const std::vector<LintRule>& data_lint_rules() {
  static const std::vector<LintRule> rules{
      {"no-validation",
       {"/data"},
       "overfitting stays unseen, and no best checkpoint can be chosen",
       no_validation},
      {"val-in-train",
       {"/data/val"},
       "its measures are those of samples that the model has seen",
       val_in_train},
      {"test-selects",
       {"/data/test", "/data/val"},
       "the best checkpoint is chosen by the samples that judge it: the result is too good",
       test_is_val},
      {"no-augmentation",
       {"/data/train"},
       "from scratch a model learns the training images by heart",
       no_augmentation}};
  return rules;
}

}  // namespace scaletrain::recipe
