// A mixture of experts of which each rank has some.
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
  // Tensor-parallel experts: each of `ranks` ranks has a part of every expert, whose last product
  // is row-parallel without a bias, and all of the rest; they run it on the same tokens. `sum` then
  // adds up the answers once, after their weights: what the layer computes in between has on each
  // rank its part of the gradients.
  virtual void cut_experts(units::Exchange sum, int ranks) = 0;
  // So many ranks have other tokens of the same sequences, as many each: what it makes of all of
  // them passes `sum`, which adds up over these ranks, forward and backward.
  virtual void share_tokens(units::Exchange sum, int ranks) = 0;
};

// Applies an expert, by its number, to rows [rows, dim].
using Answer = std::function<at::Tensor(std::size_t expert, const at::Tensor& rows)>;

// The answers to `rows`, which are sorted by expert, `counts` of each: those of this rank's experts
// to the rows of all ranks, and back. `answer` is called for each expert of this rank, with no rows
// too, so that its weights have gradients on all ranks alike. Waits for the device.
at::Tensor answers_of_ranks(const at::Tensor& rows, const std::vector<std::int64_t>& counts,
                            const units::ExpertCut& cut, const Answer& answer);

}  // namespace scaletrain::nn
