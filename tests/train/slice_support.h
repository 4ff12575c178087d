// Slices of full tensors, for tests that compare shards with one rank's tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "lib/units/shard.h"

namespace scaletrain::testing {

// Returns the elements of `full` that `shard` has, in the shape of `like`.
inline at::Tensor slice_as(const at::Tensor& full, units::Shard shard, const at::Tensor& like) {
  shard.tensor = at::empty(like.sizes(), at::TensorOptions(full.scalar_type()));
  copy_from_full(full.detach().cpu().contiguous(), shard);
  return shard.tensor;
}

}  // namespace scaletrain::testing
