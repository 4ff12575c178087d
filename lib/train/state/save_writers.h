// Chooses the ranks that write a run's checkpoints.
#pragma once

#include <memory>

#include "lib/checkpoint/writers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Returns the writers of the run's checkpoints; null if rank 0 writes all. /checkpoint/writers
// decides. With "auto" rank 0 writes small checkpoints of an unsharded model, and all of them if a
// rank does not see the run's folder of rank 0, which is probed once. Collective. Throws
// core::RecipeError on all ranks if all must write and one does not see the folder.
std::shared_ptr<checkpoint::Writers> make_writers(Run& run);

}  // namespace scaletrain::train
