// The k best checkpoints by a metric, as timm's CheckpointSaver and Lightning's save_top_k keep
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/format/train_state.h"
#include "lib/recipe/recipe.h"
#include "lib/recipe/task.h"

namespace scaletrain::train {

// Puts `one` behind all that are as good or better by `by` and drops what comes after the first
// `keep`: of equals the earlier stays. Whether `one` is among them.
bool rank(std::vector<format::RankedStep>& best_first, format::RankedStep one,
          const recipe::Measure& by, std::int64_t keep);

// What chooses the best checkpoint.
recipe::Measure best_measure(const recipe::Recipe& recipe);

// What `measure` came to; nullopt where it is not known.
std::optional<double> value_of(const recipe::Measure& measure,
                               const std::vector<recipe::Measured>& measures);

}  // namespace scaletrain::train
