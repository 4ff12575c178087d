// Run context: all parts of a run on this rank, built from the recipe.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/disk/watched_disk.h"
#include "lib/core/housekeeping.h"
#include "lib/core/process/beat.h"
#include "lib/dist/mesh.h"
#include "lib/engine/engine.h"
#include "lib/engine/pipeline.h"
#include "lib/format/checkpoint/train_state.h"
#include "lib/local_sgd/replicas.h"
#include "lib/observe/start_block.h"
#include "lib/optim/mean.h"
#include "lib/parallel/placement.h"
#include "lib/recipe/recipe.h"
#include "lib/task/task.h"
#include "lib/train/model/learner.h"
#include "lib/train/rules/length.h"
#include "lib/train/run/sets.h"

namespace scaletrain::train {

struct Run {
  recipe::Recipe recipe;
  core::Beat beat;
  // Counts failures that do not end the run: links, logs, removal of old checkpoints.
  std::shared_ptr<core::Housekeeping> housekeeping = std::make_shared<core::Housekeeping>();
  recipe::BatchPlan batch;
  std::unique_ptr<dist::Group>
      group;                         // all ranks of the job; for a decoupled replica, its own ranks
  std::unique_ptr<dist::Mesh> mesh;  // over them
  std::unique_ptr<task::Task> task;
  Sets sets;
  Length length;
  Learner learner;
  std::unique_ptr<engine::Pipeline> pipeline;  // null without pipeline parallelism
  std::unique_ptr<parallel::Placement> placement;
  std::unique_ptr<engine::Engine> engine;
  // Replicas that all-reduce gradients in each step, unless the recipe says otherwise.
  std::unique_ptr<local_sgd::Replicas> replicas = std::make_unique<local_sgd::Replicas>();
  std::vector<std::unique_ptr<optim::Mean>> means;  // EMA or SWA (lib/train/model/mean_plan.h)

  ModelSize size;  // of the full model
  // Counts of the tensors of /model/weights, on rank 0 of a fresh start.
  std::optional<observe::StartFacts::Weights> weights_loaded;
  // How the initial weights differ from the recipe (lib/exchange/compare_weights.h), on rank 0.
  std::string weights_differences;

  format::TrainState state;  // progress of training; {} at a fresh start
  bool is_saved = false;     // `state` came from a checkpoint in the run's own folder

  double lr() const;                           // learning rate of the next step
  std::optional<double> weight_decay() const;  // for the next step; nullopt: constant
  // Returns the parameters that this rank updates.
  units::Shards trained() const;
  // Returns the EMA or SWA buffers that `mean` keeps on this rank.
  NamedTensors buffers_of(const optim::Mean& mean) const;
  // Returns the system's disk, with a heartbeat of the saving phase at each operation.
  core::WatchedDisk disk() const;
  // Returns the folder of the checkpoints. Other nodes than that of rank 0 may not have it.
  std::filesystem::path checkpoints() const;
};

}  // namespace scaletrain::train
