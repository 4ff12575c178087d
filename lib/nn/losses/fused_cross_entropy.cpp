#include "lib/nn/losses/fused_cross_entropy.h"

#include <torch/csrc/autograd/custom_function.h>

#include <tuple>

#include "lib/nn/layers/device_operator.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr DeviceOperator<std::tuple<Tensor, Tensor>(const Tensor& logits, const Tensor& targets)>
    kCrossEntropyForward("scaletrain::fused_cross_entropy");
constexpr DeviceOperator<Tensor(const Tensor& factor, const Tensor& logits, const Tensor& targets,
                                const Tensor& log_sums)>
    kCrossEntropyBackward("scaletrain::fused_cross_entropy_backward");

class FusedCrossEntropy : public torch::autograd::Function<FusedCrossEntropy> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& targets) {
    const auto [losses, log_sums] = kCrossEntropyForward(logits, targets);
    context->save_for_backward({logits, targets, log_sums});
    return losses.sum();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    return {kCrossEntropyBackward(gradients[0], saved[0], saved[1], saved[2]), Tensor()};
  }
};

}  // namespace

bool fused_cross_entropy_takes(const Tensor& logits, const Tensor& targets) {
  return logits.is_cuda() && logits.dim() == 2 && logits.numel() > 0 && logits.stride(1) == 1 &&
         logits.stride(0) >= logits.size(1) && has_kernels_for(logits.scalar_type()) &&
         targets.scalar_type() == at::kLong && targets.is_contiguous() &&
         kCrossEntropyForward.exists();
}

Tensor fused_cross_entropy(const Tensor& logits, const Tensor& targets) {
  return FusedCrossEntropy::apply(logits, targets);
}

}  // namespace scaletrain::nn
