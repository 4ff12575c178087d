// What stands around layers, and the loss, of which each rank of a group has a part: made by a
// layout and used by those who do not know it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace scaletrain::units {

// Gives a tensor to the other ranks or takes theirs, forward and backward. All of them call it
// alike. Empty: the tensor stays as it is.
using Exchange = std::function<at::Tensor(const at::Tensor&)>;

struct LayerCut {
  Exchange after;          // what the layer's output passes before anything is added to it
  std::int64_t first = 0;  // of a table: the number of its first row in the whole one
};

// Logits of which each rank has those of some of the classes, one behind the other.
struct ClassCut {
  std::int64_t first = 0, classes = 0;  // the number of the first one here; of all of them
  // In place, over the ranks; all of them call it alike.
  std::function<void(const at::Tensor&)> sum, max;
};

}  // namespace scaletrain::units
