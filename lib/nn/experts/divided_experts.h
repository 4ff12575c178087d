// Expert parallelism: a mixture of experts in which each rank has some of the experts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lib/units/expert_cut.h"
#include "lib/units/layer_cut.h"

namespace scaletrain::nn {

// A layer with experts, its modules "experts.0", "experts.1", ...: a module too.
class ExpertLayer {
 public:
  virtual ~ExpertLayer() = default;
  virtual std::int64_t experts() const = 0;
  // Makes the layer run only this rank's experts; each rank has the same number of them.
  virtual void divide(units::ExpertCut cut) = 0;
  // Tensor-parallel experts: each of `ranks` ranks has a shard of every expert, whose last linear
  // layer is row-parallel without a bias; all of them run it on the same tokens. `sum` then adds
  // the weighted outputs once; gradients of intermediate values are partial on each rank.
  virtual void cut_experts(units::Exchange sum, int ranks) = 0;
  // Context parallelism: `ranks` ranks have equally many other tokens of the same sequences. Values
  // computed from all tokens pass through `sum`, which adds over these ranks, forward and backward.
  virtual void share_tokens(units::Exchange sum, int ranks) = 0;
};

// Applies an expert, by its number, to rows [rows, dim].
using Answer = std::function<at::Tensor(std::size_t expert, const at::Tensor& rows)>;

// Returns the experts' outputs for `rows`, which are sorted by expert with `counts` rows each:
// sends rows to the ranks of their experts and the outputs back (all-to-all). Calls `answer` for
// each local expert, also without rows, so that its weights have gradients on all ranks. Waits for
// the device.
at::Tensor answers_of_ranks(const at::Tensor& rows, const std::vector<std::int64_t>& counts,
                            const units::ExpertCut& cut, const Answer& answer);

}  // namespace scaletrain::nn
