// The recipe of a short trial run: `launch --overfit` and `lr-find`.
#pragma once

#include <cstdint>

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Changes `recipe` so that it trains `steps` steps at a constant learning rate and writes metrics
// every `log_every` steps: no validation, test, EMA, early stopping, schedule, profile or tracker,
// and no checkpoint before the last step.
void make_trial(std::int64_t steps, std::int64_t log_every, recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
