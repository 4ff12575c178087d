// Early stopping: counts validations without improvement.
#pragma once

#include <string>
#include <vector>

#include "lib/format/checkpoint/train_state.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Counts a validation of state.step in `state`, each step once: it is an improvement if it exceeds
// the best by more than min_delta. No-op without /early_stopping. Throws core::RecipeError if the
// metric is unknown for data.val.
void count_validation(const recipe::Recipe& recipe, const std::vector<recipe::Measured>& measures,
                      format::TrainState& state);

// Resets the count if it belongs to another measure than the recipe's.
void keep_count_of(const recipe::Recipe& recipe, format::TrainState& state);

// Returns the reason to end training at `state`, such as "top-1 was no better than 98.48 % in 5
// validations"; "" if it continues.
std::string early_end(const recipe::Recipe& recipe, const format::TrainState& state);

}  // namespace scaletrain::train
