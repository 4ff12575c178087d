#include "lib/nn/sigmoid_targets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>
#include <c10/core/ScalarType.h>

namespace scaletrain::nn {

at::Tensor shares_for(const at::Tensor& logits, const at::Tensor& targets, double smoothing) {
  const double off = smoothing / static_cast<double>(logits.size(1));
  if (targets.is_floating_point()) {
    const at::Tensor shares = targets.to(logits.scalar_type());
    return smoothing == 0 ? shares : shares * (1 - smoothing) + off;
  }
  return at::full_like(logits.detach(), off).scatter_(1, targets.unsqueeze(1), 1 - smoothing + off);
}

at::Tensor class_weights_of(const recipe::Loss& loss, at::Device device) {
  if (loss.class_weights.empty()) return {};
  return at::tensor(loss.class_weights, at::kDouble).to(device);
}

at::Tensor sum_over_samples(const at::Tensor& losses, const at::Tensor& weights, bool sum_classes) {
  const at::Tensor sum =
      (weights.defined() ? losses * weights.to(losses.scalar_type()) : losses).sum();
  return sum_classes ? sum : sum / static_cast<double>(losses.size(1));
}

}  // namespace scaletrain::nn
