// Saves the per-replica state of a sharded model (lib/train/state/own_state.h):
// tensors are [replicas, ...]; each rank writes its shard of its replica's row.
// A run with as many replicas can resume from it with any sharding of the
// model.
#pragma once

#include <filesystem>
#include <string>

#include "lib/checkpoint/contents.h"
#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Puts `own`, named PREFIX/NAME of a parameter or PREFIX/KIND/NAME, into the contents' ranks. Every
// rank calls it.
void add_own_rows(const Run& run, const NamedTensors& own, checkpoint::Contents& contents);
// For decoupled replicas, rank 0's replica writes its own rows and those that each of its ranks
// received from the same place in the other replicas (local_sgd::Replicas::states).
void add_rows_of_replicas(const Run& run, checkpoint::Contents& contents);

// Fills `own` from `checkpoint`, on all ranks or on none: then returns why, on the rank that knows.
// Every rank calls it; `fits`: the checkpoint is of as many copies.
std::string read_own_rows(const Run& run, const NamedTensors& own,
                          const std::filesystem::path& checkpoint, bool fits);

}  // namespace scaletrain::train
