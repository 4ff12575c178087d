// Builds a run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "lib/core/job/worker_env.h"
#include "lib/train/run/run.h"
#include "lib/train/run/step.h"

namespace scaletrain::train {

// Joins the other ranks of the job, which must have the same recipe and checkpoint.
std::unique_ptr<dist::Group> join_ranks(const recipe::Recipe& recipe, const core::WorkerEnv& env,
                                        const std::optional<std::filesystem::path>& checkpoint,
                                        core::Beat& beat);

// Returns the seconds from a stop to a kill: 30 if the launcher has not given them.
double grace_seconds(const core::WorkerEnv& env);

// Shards the run's model over the ranks and makes the engine that runs it.
void place(Run& run);

// Joins the other ranks and builds the run, its model with `models`; with `resume`, a verified
// checkpoint, tensors and state come from it. `before_data` may change run.recipe.batch after the
// rendezvous and before anything else is built. `before_decoupling` is called before replicas are
// decoupled: afterwards the loss of a rank no longer ends the others, and a rank with a stop
// request must reach its first step. All ranks call it at once. Throws core::RecipeError if the
// batch is still automatic, and the errors of the modules.
std::unique_ptr<Run> build_run(recipe::Recipe recipe, const core::WorkerEnv& env,
                               const std::optional<std::filesystem::path>& resume, core::Beat beat,
                               const nn::Factories& models = nn::built_in_factories(),
                               const std::function<void(Run&)>& before_data = nullptr,
                               const std::function<void()>& before_decoupling = nullptr);

// Replaces what run.state, read from a checkpoint, says of ranks, data and recipe by this run's.
void describe_run(Run& run);

// Returns the parts of `run` that a training step uses.
StepParts step_parts(
    Run& run, std::function<void()> before_update = [] {});

}  // namespace scaletrain::train
