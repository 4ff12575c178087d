#include "lib/nn/layers/norm.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include "lib/nn/layers/fused_batch_norm.h"
#include "lib/nn/layers/fused_layer_norm.h"

namespace scaletrain::nn {

Norm::Norm(std::int64_t channels)
    : weight_(register_parameter("weight", at::empty({channels}))),
      bias_(register_parameter("bias", at::empty({channels}))) {}

void Norm::initialise(const std::string& name, const at::Tensor& logical,
                      at::Generator /*generator*/) const {
  logical.fill_(name == "weight" ? 1 : 0);
}

// Output dtype of the fused kernel. A collective stays in fp32: its gradients are sums over ranks.
at::ScalarType LayerNorm::output_type(const at::Tensor& input) const {
  if (!at::autocast::is_autocast_enabled(at::kCUDA)) return input.scalar_type();
  const bool by_products = read_by_ == ReadBy::kProducts && !after_;
  return by_products ? at::autocast::get_autocast_dtype(at::kCUDA) : at::kFloat;
}

at::Tensor LayerNorm::forward(const at::Tensor& input) const {
  const at::ScalarType type = output_type(input);
  const at::Tensor output =
      fused_layer_norm_takes(input, {}, weight_, type)
          ? fused_layer_norm(input, {.weight = weight_, .bias = bias_, .eps = eps_}, type)
          : at::layer_norm(input, weight_.sizes(), weight_, bias_, eps_,
                           at::globalContext().userEnabledCuDNN());
  return after_ ? after_(output) : output;
}

LayerNorm::Sum LayerNorm::forward_sum(const at::Tensor& input, const at::Tensor& branch) const {
  const at::ScalarType type = output_type(input);
  if (fused_layer_norm_takes(input, branch, weight_, type)) {
    const auto [sum, output] =
        fused_sum_layer_norm(input, branch, {.weight = weight_, .bias = bias_, .eps = eps_}, type);
    return {.sum = sum, .output = after_ ? after_(output) : output};
  }
  const at::Tensor sum = branch.defined() ? input + branch : input;
  return {.sum = sum, .output = forward(sum)};
}

at::Tensor ImageNorm::forward_relu(const at::Tensor& input, const units::Context& context,
                                   const at::Tensor& residual) {
  at::Tensor output = forward(input, context);
  if (residual.defined()) output += residual;
  return output.relu_();
}

BatchNorm::BatchNorm(std::int64_t channels, const Options& options)
    : ImageNorm(channels),
      options_(options),
      mean_(register_buffer("running_mean", at::zeros({channels}))),
      variance_(register_buffer("running_var", at::ones({channels}))),
      batches_(register_buffer("num_batches_tracked", at::zeros({}, at::kLong))) {}

at::Tensor BatchNorm::forward(const at::Tensor& input, const units::Context& context) {
  if (is_fused(input, {})) return fused(input, {}, false, context);
  if (is_training() && !context.again) batches_.add_(1);
  // Recomputation updates copies: it saves as many tensors for backward as the first forward.
  const bool copies = is_training() && context.again;
  return at::batch_norm(input, weight_, bias_, copies ? mean_.clone() : mean_,
                        copies ? variance_.clone() : variance_, is_training(), options_.momentum,
                        options_.eps, at::globalContext().userEnabledCuDNN());
}

at::Tensor BatchNorm::forward_relu(const at::Tensor& input, const units::Context& context,
                                   const at::Tensor& residual) {
  return is_fused(input, residual) ? fused(input, residual, true, context)
                                   : ImageNorm::forward_relu(input, context, residual);
}

bool BatchNorm::is_fused(const at::Tensor& input, const at::Tensor& residual) const {
  return is_training() && fused_batch_norm_takes(input, residual, weight_, bias_);
}

at::Tensor BatchNorm::fused(const at::Tensor& input, const at::Tensor& residual, bool relu,
                            const units::Context& context) {
  FusedBatchNorm options{
      .residual = residual, .relu = relu, .eps = options_.eps, .momentum = options_.momentum};
  if (!context.again) {
    batches_.add_(1);
    options.running_mean = mean_;
    options.running_variance = variance_;
  }
  return fused_batch_norm(input, weight_, bias_, options);
}

}  // namespace scaletrain::nn
