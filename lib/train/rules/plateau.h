// Reduces the learning rate when validations stop improving: PyTorch's ReduceLROnPlateau with its
// relative threshold, applied to the schedule.
#pragma once

#include <vector>

#include "lib/format/checkpoint/train_state.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Counts a validation of state.step in `state`, each step once. No-op without /schedule/plateau.
// Throws core::RecipeError if the metric is unknown for data.val.
void look_for_plateau(const recipe::Recipe& recipe, const std::vector<recipe::Measured>& measures,
                      format::TrainState& state);

// Resets the count, but not the reductions, if it belongs to another measure than the recipe's.
void keep_plateau_of(const recipe::Recipe& recipe, format::TrainState& state);

// Returns the schedule's `lr` after the reductions so far, at least min_lr.
double lowered_lr(const recipe::Recipe& recipe, const format::TrainState& state, double lr);

}  // namespace scaletrain::train
