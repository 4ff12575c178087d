#include "lib/nn/layers/fused_layer_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <optional>
#include <tuple>

#include "lib/nn/layers/device_operator.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr DeviceOperator<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor& input, const std::optional<Tensor>& branch, const Tensor& weight,
    const Tensor& bias, double eps, at::ScalarType type)>
    kLayerNorm("scaletrain::fused_layer_norm");
constexpr DeviceOperator<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor& of_output, const std::optional<Tensor>& of_sum, const Tensor& input,
    const Tensor& means, const Tensor& scales, const Tensor& weight, at::ScalarType branch,
    bool parameters)>
    kLayerNormBackward("scaletrain::fused_layer_norm_backward");

std::optional<Tensor> contiguous(const std::optional<Tensor>& tensor) {
  return tensor ? std::optional(tensor->contiguous()) : std::nullopt;
}

// Returns the output, and the sum if it is needed; parameters are fp32.
class FusedLayerNorm : public torch::autograd::Function<FusedLayerNorm> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                               const Tensor& bias, const std::optional<Tensor>& branch, double eps,
                               at::ScalarType type, bool gives_sum) {
    context->set_materialize_grads(false);
    const Tensor rows = input.contiguous();
    const auto [sum, output, means, scales] =
        kLayerNorm(rows, contiguous(branch), weight.contiguous(), bias.contiguous(), eps, type);
    context->save_for_backward({sum.defined() ? sum : rows, means, scales, weight});
    context->saved_data["has_branch"] = branch.has_value();
    context->saved_data["branch"] =
        static_cast<std::int64_t>(branch ? branch->scalar_type() : input.scalar_type());
    if (!gives_sum) return {output};
    return {output, sum.defined() ? sum : input};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor of_sum = gradients.size() > 1 ? gradients[1] : Tensor();
    const auto branch = static_cast<at::ScalarType>(context->saved_data["branch"].toInt());
    variable_list result(7);
    Tensor of_branch;               // unless it is the input's
    if (!gradients[0].defined()) {  // nobody has read the output
      result[0] = of_sum;
      if (of_sum.defined()) of_branch = of_sum.to(branch);
    } else {
      std::tie(result[0], of_branch, result[1], result[2]) =
          kLayerNormBackward(gradients[0].contiguous(), contiguous(if_defined(of_sum)), saved[0],
                             saved[1], saved[2], saved[3].contiguous(), branch,
                             context->needs_input_grad(1) || context->needs_input_grad(2));
    }
    if (context->saved_data["has_branch"].toBool()) {
      result[3] = of_branch.defined() ? of_branch : result[0];
    }
    return result;
  }
};

bool go_together(at::ScalarType input, at::ScalarType branch, at::ScalarType output) {
  if (!has_kernels_for(input) || !has_kernels_for(branch) || !has_kernels_for(output)) return false;
  if (input == at::kFloat) return branch == at::kFloat || output == at::kFloat || branch == output;
  return branch == input && (output == input || output == at::kFloat);
}

}  // namespace

bool fused_layer_norm_takes(const Tensor& input, const Tensor& branch, const Tensor& weight,
                            at::ScalarType output) {
  if (!input.is_cuda() || !weight.is_cuda() || input.numel() == 0) return false;
  if (input.size(-1) != weight.numel() || !has_kernels_for(weight.scalar_type())) return false;
  if (input.numel() / weight.numel() > std::numeric_limits<std::int32_t>::max()) return false;
  if (branch.defined() && (!branch.is_cuda() || branch.sizes() != input.sizes())) return false;
  const at::ScalarType added = branch.defined() ? branch.scalar_type() : input.scalar_type();
  return go_together(input.scalar_type(), added, output) && kLayerNorm.exists();
}

Tensor fused_layer_norm(const Tensor& input, const LayerNormParameters& parameters,
                        at::ScalarType output) {
  return FusedLayerNorm::apply(input, parameters.weight.to(at::kFloat),
                               parameters.bias.to(at::kFloat), std::optional<Tensor>(),
                               parameters.eps, output, /*gives_sum=*/false)[0];
}

SumAndNorm fused_sum_layer_norm(const Tensor& input, const Tensor& branch,
                                const LayerNormParameters& parameters, at::ScalarType output) {
  const variable_list both =
      FusedLayerNorm::apply(input, parameters.weight.to(at::kFloat), parameters.bias.to(at::kFloat),
                            if_defined(branch), parameters.eps, output, /*gives_sum=*/true);
  return {.sum = both[1], .output = both[0]};
}

}  // namespace scaletrain::nn
