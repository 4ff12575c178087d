// The k best checkpoints by a metric, as timm's CheckpointSaver and Lightning's save_top_k keep
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/format/checkpoint/train_state.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Inserts `one` after all entries that are as good or better by `by`, and drops entries after the
// first `keep`; of equals the earlier one stays. Returns true if `one` is kept.
bool rank(std::vector<format::RankedStep>& best_first, format::RankedStep one,
          const recipe::Measure& by, std::int64_t keep);

// Returns the measure that chooses the best checkpoint.
recipe::Measure best_measure(const recipe::Recipe& recipe);

// True if the EMA's measures decide the best checkpoint, early stopping and plateaus.
bool counts_ema(const recipe::Recipe& recipe);

// Returns the name in state.json of a measure that a validation is judged by: "top1", "ema/top1".
std::string looked_at(const recipe::Recipe& recipe, const std::string& metric);

// Returns the value of `measure`; nullopt if it is not known.
std::optional<double> value_of(const recipe::Measure& measure,
                               const std::vector<recipe::Measured>& measures);

// Returns the value; throws core::RecipeError naming the key `place` if it is not known.
double known_value(const recipe::Measure& measure, const std::vector<recipe::Measured>& measures,
                   const char* place);

}  // namespace scaletrain::train
