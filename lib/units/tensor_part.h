// What one rank of a tensor group holds of a model's tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/format/piece.h"
#include "lib/units/tensor_rule.h"

namespace scaletrain::units {

// Boxes of a tensor, which are kept side by side along one dimension.
struct TensorPart {
  std::vector<std::int64_t> shape;  // of the whole tensor
  int dimension = 0;                // that is cut
  // Along it.
  struct Range {
    std::int64_t begin = 0, size = 0;
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> ranges;

  // The part of `whole`, a tensor of its own.
  at::Tensor of(const at::Tensor& whole) const;
  // Copies it into `whole`.
  void put_into(const at::Tensor& whole, const at::Tensor& part) const;
  std::vector<std::int64_t> part_shape() const;
  // Where the part's elements lie in the whole tensor, one piece behind the other (lib/format/
  // piece.h): a box each, but of several that are side by side in each row a row of each.
  std::vector<format::Piece> pieces() const;
};

// By name; what is not there is whole on every rank.
using TensorParts = std::map<std::string, TensorPart>;

// Place of a rank among those that share a model.
struct TensorPlace {
  int rank = 0, ranks = 1;
};

// The rule of a tensor, null where it is whole on every rank.
const TensorRule* find_rule(std::span<const TensorRule> plan, const std::string& tensor);

// What the rank at `place` holds of a tensor of this shape. Throws core::RecipeError
// ("/parallel/tensor: ...") where it cannot be cut so, naming numbers of ranks that would fit.
TensorPart part_of(const TensorRule& rule, const std::string& name, std::vector<std::int64_t> shape,
                   const TensorPlace& place);

}  // namespace scaletrain::units
