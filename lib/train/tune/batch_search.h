// "batch": {"per_device": "auto"}: the most samples of a micro-step that fit the memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/core/job/worker_env.h"
#include "lib/nn/factory.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// The largest of `candidates` that `fits`, given that all below one that does fit too; nullopt
// where the first does not. Doubles until one does not fit, then halves what lies between.
std::optional<std::int64_t> largest_that_fits(const std::vector<std::int64_t>& candidates,
                                              const std::function<bool(std::int64_t)>& fits);

// Puts a number into run.recipe.batch.per_device and run.state.auto_per_device where the recipe has
// none: that of the checkpoint which run.state came from, where that divides the global batch
// still. Otherwise each rank tries steps by itself, of runs of its own, and all take the smallest
// of what they found. Every rank calls it. Throws core::RecipeError where nothing would end the
// search, and core::OutOfMemoryError where not even the smallest fits.
void choose_per_device(Run& run, const core::WorkerEnv& env, const nn::Factories& models);

}  // namespace scaletrain::train
