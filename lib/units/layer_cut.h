// Tensor parallelism as layers and losses see it: collectives around a sharded layer, made by a
// parallel layout and called by the layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace scaletrain::units {

// Passes a tensor through a collective, forward and backward; all ranks of the group must call it.
// Empty: the tensor stays as it is.
using Exchange = std::function<at::Tensor(const at::Tensor&)>;

struct LayerCut {
  Exchange after;          // applied to the layer's output before its bias is added
  std::int64_t first = 0;  // for tables: first row of this rank's shard
};

// Class-parallel logits: each rank has those of consecutive classes.
struct ClassCut {
  std::int64_t first = 0, classes = 0;  // first class of this rank; number of all classes
  // All-reduces in place; all ranks of the group must call it.
  std::function<void(const at::Tensor&)> sum, max;
};

}  // namespace scaletrain::units
