#include "lib/train/rules/ranking.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::train {

bool rank(std::vector<format::RankedStep>& best_first, format::RankedStep one,
          const recipe::Measure& by, std::int64_t keep) {
  const auto place = std::find_if(
      best_first.begin(), best_first.end(),
      [&](const format::RankedStep& other) { return by.better_than(one.metric, other.metric); });
  const auto number = static_cast<std::int64_t>(place - best_first.begin());
  best_first.insert(place, one);
  if (static_cast<std::int64_t>(best_first.size()) > keep) {
    best_first.resize(static_cast<std::size_t>(keep));
  }
  return number < keep;
}

recipe::Measure best_measure(const recipe::Recipe& recipe) {
  const recipe::Best& best = recipe.checkpoint.best;
  recipe::Measure measure = *recipe::find_task(recipe.task)->measure(best.metric);
  measure.better =
      best.mode == "max" ? recipe::Measure::Better::kHigher : recipe::Measure::Better::kLower;
  return measure;
}

bool counts_ema(const recipe::Recipe& recipe) {
  return recipe.ema && recipe.checkpoint.best.weights != "model";
}

std::string looked_at(const recipe::Recipe& recipe, const std::string& metric) {
  return (counts_ema(recipe) ? "ema/" : "") + metric;
}

std::optional<double> value_of(const recipe::Measure& measure,
                               const std::vector<recipe::Measured>& measures) {
  for (const recipe::Measured& one : measures) {
    if (one.measure->name == measure.name) return one.value;
  }
  return std::nullopt;
}

double known_value(const recipe::Measure& measure, const std::vector<recipe::Measured>& measures,
                   const char* place) {
  if (const std::optional<double> value = value_of(measure, measures)) return *value;
  throw core::RecipeError(place, fmt::format("{} is not a metric of data.val", measure.name),
                          "choose another metric");
}

}  // namespace scaletrain::train
