// Builds a run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "lib/core/worker_env.h"
#include "lib/train/run.h"

namespace scaletrain::train {

// Joins the other ranks of the job, which have the same recipe and checkpoint.
std::unique_ptr<dist::Group> join_ranks(const recipe::Recipe& recipe, const core::WorkerEnv& env,
                                        const std::optional<std::filesystem::path>& checkpoint,
                                        core::Beat& beat);

// Spreads the run's model over the ranks and makes the engine that runs it.
void place(Run& run);

// Joins the other ranks and builds everything, the model by `models`; with `resume`, a verified
// checkpoint, tensors and state are its. Every rank calls it at once. Throws what the modules
// throw.
std::unique_ptr<Run> build_run(recipe::Recipe recipe, const core::WorkerEnv& env,
                               const std::optional<std::filesystem::path>& resume, core::Beat beat,
                               const nn::Factories& models = nn::built_in_factories());

}  // namespace scaletrain::train
