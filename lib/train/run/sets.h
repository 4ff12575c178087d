// The recipe's data sets, opened for this rank.
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

// Sets the position of the next step in `state`, during a batch size ramp-up.
void stand_at(const core::StepPlan& plan, format::TrainState& state);

// Opens one held-out set for this rank's place in `plan`, with labels numbered as in `classes`.
Sets open_held_out(const recipe::Recipe& recipe, const core::WorkerEnv& env,
                   const core::MeshPlan& plan, at::Device device, task::Task& task,
                   task::Split split, const format::ClassNames& classes,
                   std::vector<dist::Claim>& claims);

// Opens all sets for this rank's place in `plan`. Training continues at `state`, which moves to the
// next epoch if the set has become too small for the step. Labels of the training set are numbered
// as in `classes`, those of the checkpoint; the other sets follow the training set. Threads start
// to read ahead. Adds the facts that must agree on all ranks to `claims`. `decoupled`: rank 0's
// replica evaluates alone, so the ranks of a replica read all held-out samples.
Sets open_sets(const recipe::Recipe& recipe, const core::WorkerEnv& env, const core::MeshPlan& plan,
               at::Device device, task::Task& task, format::TrainState& state,
               const format::ClassNames& classes, std::vector<dist::Claim>& claims,
               bool decoupled = false);

}  // namespace scaletrain::train
