// Explains a step of a recipe's pipeline, from the schedule that its ranks run.
#pragma once

#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "lib/recipe/sections/batch.h"
#include "lib/recipe/sections/parallel/parallel.h"

namespace scaletrain::launcher {

// Stages, idle share and the micro-batches that each rank holds, of a step of the whole batch;
// nothing where there is no pipeline. How many of the model's units a stage has its worker knows.
std::vector<Explained> pipeline_rows(const recipe::Parallel& parallel,
                                     const recipe::BatchPlan& batch);

}  // namespace scaletrain::launcher
