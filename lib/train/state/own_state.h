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

// Returns this rank's tensors that differ between replicas and that a checkpoint keeps of each
// (local_sgd::ReplicaTraits). Asynchronous replicas keep none: a resume gives all rank 0's state.
NamedTensors replica_state(const Run& run);

// Puts what each rank has into the contents' ranks: gathered on rank 0 (below), or each rank's own
// where ranks hold the model together (lib/train/state/own_rows.h). Every rank calls it.
void add_own_state(Run& run, checkpoint::Contents& contents);

// Gathers it from all ranks in their order, [ranks, ...], in rank 0's host memory; empty on other
// ranks, and if no rank has any. Every rank calls it; decoupled replicas have sent theirs to rank 0
// (lib/train/state/replica_states.h).
NamedTensors gather_own_state(Run& run);

// Fills it from `checkpoint`, whose state `run.state` still is; where that has another mesh, or
// nothing of the same names and shapes, warns and leaves what there is: errors of zero, rank 0's
// state of the optimizer, the mean of the weights. Only rank 0 reads. Every rank calls it.
void restore_own_state(Run& run, const std::filesystem::path& checkpoint);

}  // namespace scaletrain::train
