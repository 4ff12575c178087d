// Expert parallelism as a model sees it: functions that move tokens between the ranks of experts,
// made by a parallel layout and called by the model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace scaletrain::units {

// Experts are numbered in the order of the ranks, the same number on each. All ranks must call both
// functions equally often, also with no rows.
struct ExpertCut {
  int rank = 0, ranks = 1;
  // All-to-all of counts, [ranks, ...] int64 on the CPU: row i goes to rank i; returns rows by
  // sender.
  std::function<at::Tensor(const at::Tensor& counts)> exchange_counts;
  // All-to-all of tokens: `send[i]` consecutive rows go to rank i; returns the rows from all ranks
  // in their order, `receive[i]` from rank i. Gradients travel back.
  using Counts = std::vector<std::int64_t>;
  std::function<at::Tensor(const at::Tensor& rows, const Counts& send, const Counts& receive)> move;
};

}  // namespace scaletrain::units
