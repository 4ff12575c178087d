#include "lib/train/rules/early_stopping.h"

#include <fmt/format.h>

#include <cmath>

#include "lib/recipe/recipe.h"
#include "lib/train/rules/ranking.h"

namespace scaletrain::train {
namespace {

const recipe::Measure& measure_of(const recipe::Recipe& recipe) {
  return *recipe::find_task(recipe.task)->measure(recipe.early_stopping->metric);
}

std::string name_of(const recipe::Recipe& recipe) {
  return looked_at(recipe, recipe.early_stopping->metric);
}

}  // namespace

void count_validation(const recipe::Recipe& recipe, const std::vector<recipe::Measured>& measures,
                      format::TrainState& state) {
  if (!recipe.early_stopping || state.stopping_step == state.step) return;
  const recipe::Measure& measure = measure_of(recipe);
  const double value = known_value(measure, measures, "/early_stopping/metric");
  state.stopping_step = state.step;
  const double delta = recipe.early_stopping->min_delta;
  const double least = measure.better == recipe::Measure::Better::kHigher
                           ? state.stopping_best + delta
                           : state.stopping_best - delta;
  const bool is_first = state.stopping_by.empty();
  if (!std::isfinite(value) || !(is_first || measure.better_than(value, least))) {
    ++state.no_better;
    return;
  }
  state.stopping_by = name_of(recipe);
  state.stopping_best = value;
  state.no_better = 0;
}

void keep_count_of(const recipe::Recipe& recipe, format::TrainState& state) {
  if (recipe.early_stopping && state.stopping_by == name_of(recipe)) return;
  const format::TrainState none;
  state.stopping_by = none.stopping_by;
  state.stopping_best = none.stopping_best;
  state.stopping_step = none.stopping_step;
  state.no_better = none.no_better;
}

std::string early_end(const recipe::Recipe& recipe, const format::TrainState& state) {
  if (!recipe.early_stopping || state.no_better < recipe.early_stopping->patience) return "";
  const recipe::Measure& measure = measure_of(recipe);
  return fmt::format("{} was no better than {} in {} validations", measure.label,
                     state.stopping_by.empty() ? "nothing" : measure.text(state.stopping_best),
                     state.no_better);
}

}  // namespace scaletrain::train
