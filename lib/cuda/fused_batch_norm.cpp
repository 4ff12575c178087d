// Registers the kernels as LibTorch operators for lib/nn/layers/fused_batch_norm.cpp, by name.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "lib/cuda/batch_norm_kernels.h"
#include "lib/cuda/value_type_of.h"

namespace scaletrain::cuda {
namespace {

using at::Tensor;

BatchNormMap map_of(const Tensor& input) {
  return {.values = input.const_data_ptr(),
          .type = value_type_of(input),
          .rows = input.numel() / input.size(1),
          .channels = input.size(1),
          .multiprocessors = at::cuda::getCurrentDeviceProperties()->multiProcessorCount};
}

BatchNormChannels channels_of(const Tensor& mean, const Tensor& inverse_deviation,
                              const Tensor& weight, const Tensor& bias) {
  return {.mean = mean.const_data_ptr<float>(),
          .inverse_deviation = inverse_deviation.const_data_ptr<float>(),
          .weight = weight.const_data_ptr<float>(),
          .bias = bias.const_data_ptr<float>()};
}

Tensor workspace_for(const BatchNormMap& map, const Tensor& like) {
  return at::empty({batch_norm_workspace(map)}, like.options());
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_forward(const Tensor& input,
                                                      const std::optional<Tensor>& residual,
                                                      const Tensor& weight, const Tensor& bias,
                                                      const std::optional<Tensor>& running_mean,
                                                      const std::optional<Tensor>& running_variance,
                                                      double momentum, double eps, bool relu) {
  const c10::cuda::CUDAGuard guard(input.device());
  const at::cuda::CUDAStream stream = at::cuda::getCurrentCUDAStream();
  const BatchNormMap map = map_of(input);
  const Tensor mean = at::empty_like(weight), inverse_deviation = at::empty_like(weight);
  const Tensor output = at::empty_like(input), workspace = workspace_for(map, weight);
  BatchNormRunning running{.momentum = static_cast<float>(momentum)};
  if (running_mean) running.mean = running_mean->mutable_data_ptr<float>();
  if (running_variance) running.variance = running_variance->mutable_data_ptr<float>();
  batch_norm_statistics(map, static_cast<float>(eps), running, workspace.mutable_data_ptr<float>(),
                        mean.mutable_data_ptr<float>(), inverse_deviation.mutable_data_ptr<float>(),
                        stream);
  C10_CUDA_CHECK(cudaGetLastError());
  batch_norm_output(map, channels_of(mean, inverse_deviation, weight, bias),
                    {.residual = residual ? residual->const_data_ptr() : nullptr,
                     .relu = relu,
                     .output = output.mutable_data_ptr()},
                    stream);
  C10_CUDA_CHECK(cudaGetLastError());
  return {output, mean, inverse_deviation};
}

// Returns the gradients of input and residual, undefined if not needed, of weight and of bias.
std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_gradients(
    const Tensor& gradient, const Tensor& input, const std::optional<Tensor>& output,
    const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& inverse_deviation,
    bool relu, bool of_input) {
  const c10::cuda::CUDAGuard guard(input.device());
  const BatchNormMap map = map_of(input);
  const Tensor weight_gradient = at::empty_like(weight), bias_gradient = at::empty_like(weight);
  const Tensor workspace = workspace_for(map, weight);
  const Tensor residual_gradient = output ? at::empty_like(input) : Tensor();
  const Tensor input_gradient = of_input ? at::empty_like(input) : Tensor();
  batch_norm_backward(map, channels_of(mean, inverse_deviation, weight, bias),
                      {.of_output = gradient.const_data_ptr(),
                       .output = output ? output->const_data_ptr() : nullptr,
                       .relu = relu,
                       .of_residual = output ? residual_gradient.mutable_data_ptr() : nullptr,
                       .of_values = of_input ? input_gradient.mutable_data_ptr() : nullptr,
                       .of_weight = weight_gradient.mutable_data_ptr<float>(),
                       .of_bias = bias_gradient.mutable_data_ptr<float>()},
                      workspace.mutable_data_ptr<float>(), at::cuda::getCurrentCUDAStream());
  C10_CUDA_CHECK(cudaGetLastError());
  return {input_gradient, residual_gradient, weight_gradient, bias_gradient};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(scaletrain, library) {
  library.def(
      "fused_batch_norm(Tensor input, Tensor? residual, Tensor weight, Tensor bias, "
      "Tensor(a!)? running_mean, Tensor(b!)? running_variance, float momentum, float eps, "
      "bool relu) -> (Tensor, Tensor, Tensor)");
  library.def(
      "fused_batch_norm_backward(Tensor gradient, Tensor input, Tensor? output, Tensor weight, "
      "Tensor bias, Tensor mean, Tensor inverse_deviation, bool relu, bool of_input) "
      "-> (Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(scaletrain, CUDA, library) {
  library.impl("fused_batch_norm", batch_norm_forward);
  library.impl("fused_batch_norm_backward", batch_norm_gradients);
}

}  // namespace scaletrain::cuda
