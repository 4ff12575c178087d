// Experts of a mixture of which each rank of a group has some: made by a layout and used by the
// model, which do not know each other.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace scaletrain::units {

// The ranks' experts follow each other in the order of the ranks, as many on each. All ranks call
// both functions alike, also those that have no rows.
struct ExpertCut {
  int rank = 0, ranks = 1;
  // [ranks, ...] int64 on the host: the row for each rank becomes the one that each has for this.
  std::function<at::Tensor(const at::Tensor& counts)> exchange_counts;
  // The rows that each rank has for this one, `receive[i]` of rank i, one behind the other; of
  // `rows` `send[i]` go to rank i. Their gradients go the way back.
  using Counts = std::vector<std::int64_t>;
  std::function<at::Tensor(const at::Tensor& rows, const Counts& send, const Counts& receive)> move;
};

}  // namespace scaletrain::units
