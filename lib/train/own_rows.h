// What ranks that hold a model together have of their own beside the other copies of it
// (lib/train/own_state.h), for a checkpoint: of tensors [copies, ...] each has the row of its copy,
// and of that what it holds. So a run with as many copies goes on from it, however its ranks hold
// the model.
#pragma once

#include <filesystem>
#include <string>

#include "lib/checkpoint/contents.h"
#include "lib/train/buffers.h"
#include "lib/train/run.h"

namespace scaletrain::train {

// Puts `own`, named PREFIX/NAME of a parameter or PREFIX/KIND/NAME, into the contents' ranks. Every
// rank calls it.
void add_own_rows(const Run& run, const NamedTensors& own, checkpoint::Contents& contents);
// The same of replicas that are apart, by the ranks of rank 0's: what each of them has, and what
// those at its place in the others have given to it (run.replicas), as these would write it.
void add_rows_of_replicas(const Run& run, checkpoint::Contents& contents);

// Fills `own` from `checkpoint`, on all ranks or on none: then returns why, on the rank that knows.
// Every rank calls it; `fits`: the checkpoint is of as many copies.
std::string read_own_rows(const Run& run, const NamedTensors& own,
                          const std::filesystem::path& checkpoint, bool fits);

}  // namespace scaletrain::train
