// Tensor-parallel shards of a model's tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/format/checkpoint/piece.h"
#include "lib/units/tensor_rule.h"

namespace scaletrain::units {

// A shard: ranges of a tensor along one dimension, stored side by side.
struct TensorPart {
  std::vector<std::int64_t> shape;  // full tensor
  int dimension = 0;                // sharded dimension
  // Range along the sharded dimension.
  struct Range {
    std::int64_t begin = 0, size = 0;
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> ranges;

  // Returns the shard of `whole` as a new tensor.
  at::Tensor of(const at::Tensor& whole) const;
  // Copies the shard `part` to its place in `whole`.
  void put_into(const at::Tensor& whole, const at::Tensor& part) const;
  std::vector<std::int64_t> part_shape() const;
  // Positions of the shard's elements in the full tensor, as consecutive pieces (lib/format/
  // piece.h): one for each range, or if several ranges lie in each row one for each row and range.
  std::vector<format::Piece> pieces() const;
};

// Shards by tensor name; tensors without an entry are replicated on every rank.
using TensorParts = std::map<std::string, TensorPart>;

// Rank in a tensor-parallel group.
struct TensorPlace {
  int rank = 0, ranks = 1;
};

// Rule that matches a tensor; null if it is replicated on every rank.
const TensorRule* find_rule(std::span<const TensorRule> plan, const std::string& tensor);

// Shard of the rank at `place` for a tensor of this shape. Throws core::RecipeError
// ("/parallel/tensor: ...") if it cannot be sharded evenly, with the numbers of ranks that fit.
TensorPart part_of(const TensorRule& rule, const std::string& name, std::vector<std::int64_t> shape,
                   const TensorPlace& place);

}  // namespace scaletrain::units
