// What a step of a recipe costs, measured on the ranks that train it: memory and time.
#pragma once

#include <cstdint>
#include <functional>

#include "lib/core/worker_env.h"
#include "lib/nn/factory.h"
#include "lib/recipe/recipe.h"
#include "lib/train/run.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::train {

using BeforeData = std::function<void(Run&)>;

// Of what was measured.
struct StepCost {
  units::MemoryUse memory;
  double seconds = 0;
  std::int64_t auto_per_device = 0;  // what was found; 0: it is a number
};

// Tensors' peak by kind in a step like all others, after the first ones, of the rank whose peak is
// the highest. Builds the run, trains a few steps and leaves no file; every rank calls it.
// `before_data` is for build_run(): it may find the batch.
StepCost measure_memory(recipe::Recipe recipe, const core::WorkerEnv& env,
                        const nn::Factories& models, const BeforeData& before_data = nullptr);

// The same of the first steps of a run of one rank, which is what a step of `recipe` needs of this
// one.
units::MemoryUse measure_first_steps(recipe::Recipe recipe, const core::WorkerEnv& env,
                                     const nn::Factories& models);

// Seconds of a step, the median of `steps` on this rank, data included.
StepCost measure_speed(recipe::Recipe recipe, const core::WorkerEnv& env, std::int64_t steps,
                       const nn::Factories& models, const BeforeData& before_data = nullptr);

}  // namespace scaletrain::train
