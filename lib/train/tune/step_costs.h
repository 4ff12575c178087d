// Measured cost of a recipe's step on the ranks that train it: memory and time.
#pragma once

#include <cstdint>
#include <functional>

#include "lib/core/job/worker_env.h"
#include "lib/nn/factory.h"
#include "lib/recipe/recipe.h"
#include "lib/train/run/run.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::train {

using BeforeData = std::function<void(Run&)>;

// Memory and time of a measured step.
struct StepCost {
  units::MemoryUse memory;
  double seconds = 0;
  std::int64_t auto_per_device = 0;  // batch size found for "auto"; 0: not "auto"
};

// Tensors' peak by kind in a step like all others, after the first ones, of the rank whose peak is
// the highest. Builds the run, trains a few steps and leaves no file; every rank calls it.
// `before_data` is for build_run(): it may find the batch.
StepCost measure_memory(recipe::Recipe recipe, const core::WorkerEnv& env,
                        const nn::Factories& models, const BeforeData& before_data = nullptr);

// Measures the memory of the first steps of a one-rank run, that is, the need of a step of `recipe`
// on this rank.
units::MemoryUse measure_first_steps(recipe::Recipe recipe, const core::WorkerEnv& env,
                                     const nn::Factories& models);

// Seconds of a step, the median of `steps` on this rank, data included.
StepCost measure_speed(recipe::Recipe recipe, const core::WorkerEnv& env, std::int64_t steps,
                       const nn::Factories& models, const BeforeData& before_data = nullptr);

}  // namespace scaletrain::train
