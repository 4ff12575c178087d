// Tensor-parallel shards of a model's tensors, as its plan divides them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/units/shard.h"
#include "lib/units/tensor_rule.h"

namespace scaletrain::units {

// Rank in a tensor-parallel group.
struct TensorPlace {
  int rank = 0, ranks = 1;
};

// Returns the rule that matches a tensor; null if it is replicated on every rank.
const TensorRule* find_rule(std::span<const TensorRule> plan, const std::string& tensor);

// Returns the shard of the rank at `place`, without a tensor, for a tensor of this shape: ranges
// along the rule's dimension, side by side. Throws core::RecipeError ("/parallel/tensor: ...") if
// it cannot be sharded evenly, with the numbers of ranks that fit.
Shard shard_by(const TensorRule& rule, const std::string& name, std::vector<std::int64_t> shape,
               const TensorPlace& place);

// Returns the shape of the shard's local tensor: that of the full one except along `dimension`.
std::vector<std::int64_t> local_shape(const Shard& shard, int dimension);
// Returns the shard's elements of `full` as a new tensor of that shape.
at::Tensor slice_of(const at::Tensor& full, const Shard& shard, int dimension);

}  // namespace scaletrain::units
