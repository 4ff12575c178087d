#include "lib/train/rules/plateau.h"

#include <algorithm>
#include <cmath>

#include "lib/recipe/recipe.h"
#include "lib/train/rules/ranking.h"

namespace scaletrain::train {
namespace {

// Returns best * (1 + threshold) for a higher-is-better measure, else best * (1 - threshold).
double least_better(const recipe::Measure& measure, double best, double threshold) {
  return best *
         (measure.better == recipe::Measure::Better::kHigher ? 1 + threshold : 1 - threshold);
}

}  // namespace

void look_for_plateau(const recipe::Recipe& recipe, const std::vector<recipe::Measured>& measures,
                      format::TrainState& state) {
  if (!recipe.schedule.plateau || state.plateau_step == state.step) return;
  const recipe::Plateau& plateau = *recipe.schedule.plateau;
  const recipe::Measure& measure = *recipe::find_task(recipe.task)->measure(plateau.metric);
  const double value = known_value(measure, measures, "/schedule/plateau/metric");
  state.plateau_step = state.step;
  const bool is_better =
      std::isfinite(value) &&
      (state.plateau_by.empty() ||
       measure.better_than(value, least_better(measure, state.plateau_best, plateau.threshold)));
  if (is_better) {
    state.plateau_by = looked_at(recipe, plateau.metric);
    state.plateau_best = value;
    state.plateau_bad = 0;
  } else {
    ++state.plateau_bad;
  }
  if (state.plateau_cooldown > 0) {
    --state.plateau_cooldown;
    state.plateau_bad = 0;
  }
  if (state.plateau_bad <= plateau.patience) return;
  ++state.plateau_drops;
  state.plateau_cooldown = plateau.cooldown;
  state.plateau_bad = 0;
}

void keep_plateau_of(const recipe::Recipe& recipe, format::TrainState& state) {
  const format::TrainState none;
  if (!recipe.schedule.plateau) state.plateau_drops = none.plateau_drops;
  if (recipe.schedule.plateau &&
      state.plateau_by == looked_at(recipe, recipe.schedule.plateau->metric)) {
    return;
  }
  state.plateau_by = none.plateau_by;
  state.plateau_best = none.plateau_best;
  state.plateau_step = none.plateau_step;
  state.plateau_bad = none.plateau_bad;
  state.plateau_cooldown = none.plateau_cooldown;
}

double lowered_lr(const recipe::Recipe& recipe, const format::TrainState& state, double lr) {
  if (!recipe.schedule.plateau) return lr;
  const recipe::Plateau& plateau = *recipe.schedule.plateau;
  const double lowered = lr * std::pow(plateau.factor, static_cast<double>(state.plateau_drops));
  return std::max(lowered, std::min(lr, plateau.min_lr));
}

}  // namespace scaletrain::train
