// A run that only looks: a checkpoint's model, ready to be evaluated or to predict.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lib/core/job/worker_env.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// A checkpoint, and which of its weights (format::weights_file).
struct StoredModel {
  std::filesystem::path checkpoint;
  std::string weights = {};
};

// Joins the other ranks and builds what `recipe`, the checkpoint's own, needs to look at `split`,
// or at no set of the recipe. The training set is not opened, and there is neither optimizer nor
// schedule; batches have /batch/per_device samples on any number of ranks. Rank 0 reads the model
// and the state. Every rank calls it at once. Throws what the modules throw.
std::unique_ptr<Run> build_evaluation(recipe::Recipe recipe, const core::WorkerEnv& env,
                                      const StoredModel& stored, std::optional<task::Split> split,
                                      const nn::Factories& models = nn::built_in_factories());

}  // namespace scaletrain::train
