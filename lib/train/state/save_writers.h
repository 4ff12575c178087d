// Chooses the ranks that write a run's checkpoints.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/checkpoint/writers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Returns the bytes in a checkpoint of the full model, the optimizer and the EMA or SWA weights.
std::int64_t bytes_of_state(const Run& run);

// How this rank writes a share of each checkpoint; null where rank 0 writes all of it: as
// /checkpoint/writers says, and with "auto" where there is little to write, or a rank does not see
// the run's folder of rank 0, which is looked into once. Every rank calls it. Throws
// core::RecipeError on all ranks where "all" shall write and one does not see it.
std::shared_ptr<checkpoint::Writers> make_writers(Run& run);

}  // namespace scaletrain::train
