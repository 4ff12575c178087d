// EMA and SWA weights of a run: counts of updates, and the average that a test evaluates.
#pragma once

#include <cstdint>

#include "lib/optim/mean.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Counts the updates after step `step` (from 0), which was not skipped.
void count_updates(Run& run, std::int64_t step);

// Returns the average that a test at the end of training evaluates in place of the best checkpoint:
// SWA, which is best only then; otherwise nullptr.
const optim::Mean* final_mean(const Run& run);

}  // namespace scaletrain::train
