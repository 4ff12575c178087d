#include "lib/nn/layers/fused_batch_norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <tuple>

#include "lib/nn/layers/device_operator.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr DeviceOperator<std::tuple<Tensor, Tensor, Tensor>(
    const Tensor& input, const std::optional<Tensor>& residual, const Tensor& weight,
    const Tensor& bias, const std::optional<Tensor>& running_mean,
    const std::optional<Tensor>& running_variance, double momentum, double eps, bool relu)>
    kBatchNormForward("scaletrain::fused_batch_norm");
constexpr DeviceOperator<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor& gradient, const Tensor& input, const std::optional<Tensor>& output,
    const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& inverse_deviation,
    bool relu, bool of_input)>
    kBatchNormBackward("scaletrain::fused_batch_norm_backward");

class Fused : public torch::autograd::Function<Fused> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input,
                        const std::optional<Tensor>& residual, const Tensor& weight,
                        const Tensor& bias, const FusedBatchNorm& options) {
    const auto [output, mean, inverse_deviation] = kBatchNormForward(
        input, residual, weight, bias, if_defined(options.running_mean),
        if_defined(options.running_variance), options.momentum, options.eps, options.relu);
    // Only the output shows if the sum with a residual was positive.
    const bool keeps_output = residual && options.relu;
    context->save_for_backward(
        {input, weight, bias, mean, inverse_deviation, keeps_output ? output : Tensor()});
    context->saved_data["residual"] = residual.has_value();
    context->saved_data["relu"] = options.relu;
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool relu = context->saved_data["relu"].toBool();
    const Tensor gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const auto [of_input, of_sum, of_weight, of_bias] =
        kBatchNormBackward(gradient, saved[0], if_defined(saved[5]), saved[1], saved[2], saved[3],
                           saved[4], relu, context->needs_input_grad(0));
    const bool had_residual = context->saved_data["residual"].toBool();
    const Tensor of_residual = had_residual ? (relu ? of_sum : gradient) : Tensor();
    return {of_input, of_residual, of_weight, of_bias, Tensor()};
  }
};

bool is_map(const Tensor& tensor) {
  return tensor.is_cuda() && tensor.dim() == 4 && tensor.numel() > tensor.size(1) &&
         has_kernels_for(tensor.scalar_type()) &&
         tensor.is_contiguous(at::MemoryFormat::ChannelsLast);
}

bool is_parameter(const Tensor& tensor, const Tensor& of) {
  return tensor.scalar_type() == at::kFloat && tensor.device() == of.device() &&
         tensor.is_contiguous();
}

}  // namespace

bool fused_batch_norm_takes(const Tensor& input, const Tensor& residual, const Tensor& weight,
                            const Tensor& bias) {
  if (!is_map(input) || !is_parameter(weight, input) || !is_parameter(bias, input)) return false;
  if (residual.defined() &&
      (!is_map(residual) || residual.scalar_type() != input.scalar_type() ||
       residual.device() != input.device() || residual.sizes() != input.sizes())) {
    return false;
  }
  return kBatchNormForward.exists();
}

Tensor fused_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const FusedBatchNorm& options) {
  return Fused::apply(input, if_defined(options.residual), weight, bias, options);
}

}  // namespace scaletrain::nn
