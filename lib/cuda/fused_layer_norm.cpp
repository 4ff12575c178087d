// Registers the kernels as LibTorch operators for lib/nn/layers/fused_layer_norm.cpp, by name.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "lib/cuda/layer_norm_kernels.h"
#include "lib/cuda/value_type_of.h"

namespace scaletrain::cuda {
namespace {

using at::Tensor;

LayerNormRows rows_of(const Tensor& input, const Tensor& branch, const Tensor& output,
                      const Tensor& weight) {
  const LayerNormRows rows{.type = value_type_of(input),
                           .branch = value_type_of(branch),
                           .output = value_type_of(output),
                           .rows = input.numel() / weight.numel(),
                           .channels = weight.numel(),
                           .weight = weight.const_data_ptr<float>()};
  TORCH_CHECK(rows.takes_types(), "no layer norm of ", input.scalar_type(), " and ",
              branch.scalar_type(), " gives ", output.scalar_type());
  return rows;
}

void* memory_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}

// Returns the sum (undefined without a branch), output, means and scales.
std::tuple<Tensor, Tensor, Tensor, Tensor> normalise_sum(const Tensor& input, const Tensor& branch,
                                                         const Tensor& weight, const Tensor& bias,
                                                         double eps, at::ScalarType type) {
  const c10::cuda::CUDAGuard guard(input.device());
  const Tensor output = at::empty(input.sizes(), input.options().dtype(type));
  const LayerNormRows on = rows_of(input, branch.defined() ? branch : input, output, weight);
  const Tensor means = at::empty({on.rows}, weight.options()), scales = at::empty_like(means);
  const Tensor sum = branch.defined() ? at::empty_like(input) : Tensor();
  layer_norm(on,
             {.input = input.const_data_ptr(),
              .branch = branch.defined() ? branch.const_data_ptr() : nullptr,
              .bias = bias.const_data_ptr<float>(),
              .eps = static_cast<float>(eps),
              .sum = memory_of(sum),
              .output = output.mutable_data_ptr(),
              .means = means.mutable_data_ptr<float>(),
              .scales = scales.mutable_data_ptr<float>()},
             at::cuda::getCurrentCUDAStream());
  C10_CUDA_CHECK(cudaGetLastError());
  return {sum, output, means, scales};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> normalise(const Tensor& input,
                                                     const std::optional<Tensor>& branch,
                                                     const Tensor& weight, const Tensor& bias,
                                                     double eps, at::ScalarType type) {
  return normalise_sum(input, branch.value_or(Tensor()), weight, bias, eps, type);
}

// Returns gradients of input, branch (undefined if equal to the input's), weight and bias (both
// undefined if not needed).
std::tuple<Tensor, Tensor, Tensor, Tensor> normalise_backward(
    const Tensor& of_output, const std::optional<Tensor>& of_sum, const Tensor& input,
    const Tensor& means, const Tensor& scales, const Tensor& weight, at::ScalarType branch,
    bool parameters) {
  const c10::cuda::CUDAGuard guard(input.device());
  const Tensor of_input = at::empty_like(input);
  Tensor of_branch, of_weight, of_bias, partial_sums;
  if (branch != input.scalar_type()) {
    of_branch = at::empty(input.sizes(), input.options().dtype(branch));
  }
  const LayerNormRows on =
      rows_of(input, of_branch.defined() ? of_branch : input, of_output, weight);
  const std::int64_t blocks =
      layer_norm_blocks(on, at::cuda::getCurrentDeviceProperties()->multiProcessorCount);
  if (parameters) {
    of_weight = at::empty_like(weight);
    of_bias = at::empty_like(weight);
    partial_sums = at::empty({2, blocks, on.channels}, weight.options());
  }
  const auto floats = [](const Tensor& tensor) { return static_cast<float*>(memory_of(tensor)); };
  layer_norm_backward(on,
                      {.of_output = of_output.const_data_ptr(),
                       .of_sum = of_sum && of_sum->defined() ? of_sum->const_data_ptr() : nullptr,
                       .input = input.const_data_ptr(),
                       .means = means.const_data_ptr<float>(),
                       .scales = scales.const_data_ptr<float>(),
                       .of_input = of_input.mutable_data_ptr(),
                       .of_branch = memory_of(of_branch),
                       .of_weight = floats(of_weight),
                       .of_bias = floats(of_bias),
                       .partial_sums = floats(partial_sums),
                       .blocks = blocks},
                      at::cuda::getCurrentCUDAStream());
  C10_CUDA_CHECK(cudaGetLastError());
  return {of_input, of_branch, of_weight, of_bias};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(scaletrain, library) {
  library.def(
      "fused_layer_norm(Tensor input, Tensor? branch, Tensor weight, Tensor bias, float eps, "
      "ScalarType type) -> (Tensor, Tensor, Tensor, Tensor)");
  library.def(
      "fused_layer_norm_backward(Tensor of_output, Tensor? of_sum, Tensor input, Tensor means, "
      "Tensor scales, Tensor weight, ScalarType branch, bool parameters) -> (Tensor, Tensor, "
      "Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(scaletrain, CUDA, library) {
  library.impl("fused_layer_norm", normalise);
  library.impl("fused_layer_norm_backward", normalise_backward);
}

}  // namespace scaletrain::cuda
