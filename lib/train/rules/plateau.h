// The learning rate falls where the validations get no better: PyTorch's ReduceLROnPlateau, with
// its relative threshold, over the schedule.
#pragma once

#include <vector>

#include "lib/format/checkpoint/train_state.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Counts a validation of state.step in `state`, each step once. Without /schedule/plateau nothing.
// Throws core::RecipeError where its metric is not known of data.val.
void look_for_plateau(const recipe::Recipe& recipe, const std::vector<recipe::Measured>& measures,
                      format::TrainState& state);

// Forgets what was counted by another measure than the recipe's, but not the drops.
void keep_plateau_of(const recipe::Recipe& recipe, format::TrainState& state);

// `lr` of the schedule after the drops so far, which leave it at min_lr at least.
double lowered_lr(const recipe::Recipe& recipe, const format::TrainState& state, double lr);

}  // namespace scaletrain::train
