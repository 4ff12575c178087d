// BatchNorm over the batches of all ranks.
#pragma once

#include <cstdint>

#include "lib/nn/layers/norm.h"

namespace scaletrain::nn {

// PyTorch's SyncBatchNorm on any device: in training the mean and the variance are those of the
// samples of all ranks, which units::Context::sum_over_ranks adds up, once forward and once
// backward. The gradients of weight and bias are this rank's, as any other parameter's. Without
// other ranks, and in evaluation, it is BatchNorm. Not differentiable twice.
class SyncBatchNorm : public BatchNorm {
 public:
  SyncBatchNorm(std::int64_t channels, const Options& options) : BatchNorm(channels, options) {}
  at::Tensor forward(const at::Tensor& input, const units::Context& context) override;
  at::Tensor forward_relu(const at::Tensor& input, const units::Context& context,
                          const at::Tensor& residual = {}) override;

 private:
  bool has_ranks(const units::Context& context) const {
    return is_training() && context.sum_over_ranks != nullptr;
  }
};

}  // namespace scaletrain::nn
