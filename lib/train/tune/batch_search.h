// "batch": {"per_device": "auto"}: searches the largest micro-batch that fits the memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/core/job/worker_env.h"
#include "lib/nn/factory.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Returns the largest of `candidates` for which `fits` is true, assuming that all smaller ones fit
// too; nullopt if the first does not. Doubles until one does not fit, then bisects.
std::optional<std::int64_t> largest_that_fits(const std::vector<std::int64_t>& candidates,
                                              const std::function<bool(std::int64_t)>& fits);

// Sets run.recipe.batch.per_device and run.state.auto_per_device for "auto": to the value of the
// checkpoint in run.state if it still divides the global batch; otherwise each rank tries steps of
// runs of its own, and all take the smallest result. Collective. Throws core::RecipeError if
// nothing would end the search, and core::OutOfMemoryError if not even the smallest fits.
void choose_per_device(Run& run, const core::WorkerEnv& env, const nn::Factories& models);

}  // namespace scaletrain::train
