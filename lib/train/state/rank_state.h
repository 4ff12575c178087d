// Rank-local state beside the buffers (lib/train/model/buffers.h): error-feedback residuals of
// gradient compression; for local-SGD replicas the optimizer state, the weights if they always
// differ, and the loss scale if each has its own. A checkpoint keeps it for a job of the same mesh;
// the state of replicas for a job of as many.
#pragma once

#include <filesystem>

#include "lib/checkpoint/contents.h"
#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Returns this rank's state that differs between replicas and that a checkpoint keeps of each
// (local_sgd::ReplicaTraits), as PREFIX/NAME or PREFIX/KIND/NAME. Asynchronous replicas keep none:
// a resume gives all rank 0's state.
units::Shards replica_state(const Run& run);

// Adds a file of the state of all ranks to `contents`. If the model is sharded, each rank writes
// its shards of its replica's row of tensors [replicas, ...]: a run with as many replicas can
// resume from it in any layout. Decoupled replicas have sent their rows to rank 0's replica
// (lib/train/state/replica_states.h). Otherwise rank 0 gathers tensors [ranks, ...]. Collective.
void add_rank_state(Run& run, checkpoint::Contents& contents);

// Restores this rank's state from `checkpoint`, whose training state run.state still is, on all
// ranks or on none. If it is of another mesh, or has other names and shapes, warns and leaves the
// present state: residuals of zero, rank 0's optimizer state, the mean of the weights. Collective.
void restore_rank_state(Run& run, const std::filesystem::path& checkpoint);

}  // namespace scaletrain::train
