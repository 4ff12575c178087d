// Explains a step of a recipe's pipeline, from the schedule that its ranks run.
#pragma once

#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "lib/recipe/sections/batch.h"
#include "lib/recipe/sections/parallel/parallel.h"

namespace scaletrain::launcher {

// Returns rows with stages, idle share and the number of micro-batches in memory on each rank, for
// a step of the full batch; {} without a pipeline. Only the worker knows the number of units in a
// stage.
std::vector<Explained> pipeline_rows(const recipe::Parallel& parallel,
                                     const recipe::BatchPlan& batch);

}  // namespace scaletrain::launcher
