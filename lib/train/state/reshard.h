// Resharding of state for a file: full tensors, or an equal range of each tensor on each rank.
#pragma once

#include "lib/dist/group.h"
#include "lib/units/shard.h"

namespace scaletrain::train {

// Gathers full tensors in CPU memory from the owned shards of all ranks of `group`, which have
// shards of the same names; unsharded tensors stay as they are. Collective.
units::Shards gather_full(dist::Group& group, const units::Shards& shards);

// Replaces the shards of tensors of which some rank of `group` has several slices: each rank gets
// one slice, an equal range of the elements in the order of the ranks, in CPU memory. Tensor
// parallelism shards each row of a fused projection, and one file has one slice of a tensor. One
// tensor at a time is full on each rank. Collective.
units::Shards merge_slices(dist::Group& group, const units::Shards& shards);

}  // namespace scaletrain::train
