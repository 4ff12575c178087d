// Training ends early where the validations get no better: what is counted for that, and when.
#pragma once

#include <string>
#include <vector>

#include "lib/format/checkpoint/train_state.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Counts a validation of state.step in `state`, each step once: it is better where it is so by more
// than min_delta than the best so far. Without /early_stopping nothing. Throws core::RecipeError
// where its metric is not known of data.val.
void count_validation(const recipe::Recipe& recipe, const std::vector<recipe::Measured>& measures,
                      format::TrainState& state);

// Forgets what was counted by another measure than the recipe's.
void keep_count_of(const recipe::Recipe& recipe, format::TrainState& state);

// Why training ends at `state` before its length is reached, for a person: "top-1 was no better
// than 98.48 % in 5 validations"; "" where it goes on.
std::string early_end(const recipe::Recipe& recipe, const format::TrainState& state);

}  // namespace scaletrain::train
