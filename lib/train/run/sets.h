// The recipe's sets, opened for this rank.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "lib/core/buffer.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/plan/mesh_plan.h"
#include "lib/core/plan/step_plan.h"
#include "lib/dist/agreement.h"
#include "lib/format/checkpoint/train_state.h"
#include "lib/task/task.h"
#include "lib/train/run/training_set.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

struct Sets {
  std::unique_ptr<core::BufferPool> pool;
  task::OpenSet train;
  std::map<task::Split, task::OpenSet> held_out;  // open sets by split
  TrainingSet training_set;                       // facts about data.train

  data::BatchStream* stream(task::Split split) const;  // nullptr: it is not open
};

// Puts the place of the next step into `state`, of a batch that grows.
void stand_at(const core::StepPlan& plan, format::TrainState& state);

// One held-out set alone, for this rank's place in `plan`, its labels numbered as `classes`.
Sets open_held_out(const recipe::Recipe& recipe, const core::WorkerEnv& env,
                   const core::MeshPlan& plan, at::Device device, task::Task& task,
                   task::Split split, const format::ClassNames& classes,
                   std::vector<dist::Claim>& claims);

// Opens all of them for this rank's place in `plan`; training goes on where `state` stands, which
// is moved to the next epoch where the set has become too small for the step. Labels of the
// training set are numbered as `classes`, those of the checkpoint, and labels of the others as the
// training set's. Threads begin to read ahead. Adds to `claims` what all ranks must have alike.
// `decoupled`: rank 0's replica evaluates alone, so the ranks of a replica read all held-out
// samples.
Sets open_sets(const recipe::Recipe& recipe, const core::WorkerEnv& env, const core::MeshPlan& plan,
               at::Device device, task::Task& task, format::TrainState& state,
               const format::ClassNames& classes, std::vector<dist::Claim>& claims,
               bool decoupled = false);

}  // namespace scaletrain::train
