// A run without training: a checkpoint's model, ready for evaluation or prediction.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lib/core/job/worker_env.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// A checkpoint and the name of its weights (format::weights_file).
struct StoredModel {
  std::filesystem::path checkpoint;
  std::string weights = {};
};

// Joins the other ranks and builds a run for evaluation, without training set, optimizer and
// schedule. `recipe` is the checkpoint's. `split`: the set to open; nullopt: none. Batches have
// /batch/per_device samples on each rank. Rank 0 reads the model and the state. Collective. Throws
// the errors of data, model and checkpoint.
std::unique_ptr<Run> build_evaluation(recipe::Recipe recipe, const core::WorkerEnv& env,
                                      const StoredModel& stored, std::optional<task::Split> split,
                                      const nn::Factories& models = nn::built_in_factories());

}  // namespace scaletrain::train
