// A rank's shard of a tensor. Every component that has state (model, optimizer, averaged weights,
// error feedback) describes it to checkpoints in this one form.
//
// An unsharded tensor is one slice. State that each rank or replica has for itself is a shard of a
// tensor with a leading dimension of ranks or replicas.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/format/checkpoint/piece.h"

namespace scaletrain::units {

using NamedTensors = std::map<std::string, at::Tensor>;

struct Shard {
  at::Tensor tensor = {};                // this rank's elements, slice after slice
  std::vector<std::int64_t> shape = {};  // of the full tensor
  // Positions of the elements in the full tensor; {}: other ranks hold all of them.
  std::vector<format::Piece> slices = {};
  // True on exactly one of the ranks of a model replica that hold the same elements; it saves them.
  bool owned = true;

  bool is_here() const { return !slices.empty(); }
  bool is_full() const;
  std::int64_t count() const;  // elements of the slices
};

using Shards = std::map<std::string, Shard>;  // by the name of the full tensor

// Describes unsharded tensors.
Shard full_shard(at::Tensor tensor, bool owned = true);
Shards full_shards(const NamedTensors& tensors, bool owned = true);

// Returns the local tensors of the shards that this rank holds.
NamedTensors local_tensors(const Shards& shards);

// Returns the shard of elements [first, last) of `shard`, in the order of its slices. If it has a
// tensor, the result has a view of it.
Shard range_of(const Shard& shard, std::int64_t first, std::int64_t last);

// Returns the shard of row `row` of a tensor [rows, shape of `shard`], with the same elements.
Shard in_row(Shard shard, std::int64_t row, std::int64_t rows);

// Copies the elements of `shard` to their positions in `full`, a contiguous tensor of its shape and
// dtype in CPU memory, and back. Throws core::InternalError if `shard` has another number of
// elements than its slices.
void copy_to_full(const Shard& shard, const at::Tensor& full);
void copy_from_full(const at::Tensor& full, const Shard& shard);

}  // namespace scaletrain::units
