// The means of a run's weights: how often they have moved, and which one is tested.
#pragma once

#include <cstdint>

#include "lib/optim/mean.h"
#include "lib/train/run.h"

namespace scaletrain::train {

// Counts the updates after step number `step` (from 0), which was not left out.
void count_updates(Run& run, std::int64_t step);

// What a test measures at the end of training in place of the best: nullptr unless that is an equal
// mean, which is the best only then.
const optim::Mean* final_mean(const Run& run);

}  // namespace scaletrain::train
