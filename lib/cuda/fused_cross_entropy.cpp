// Registers the kernels as LibTorch operators for lib/nn/losses/fused_cross_entropy.cpp, by name.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include <tuple>

#include "lib/cuda/cross_entropy_kernels.h"
#include "lib/cuda/value_type_of.h"

namespace scaletrain::cuda {
namespace {

CrossEntropyRows rows_of(const at::Tensor& logits, const at::Tensor& targets) {
  return {.logits = logits.const_data_ptr(),
          .type = value_type_of(logits),
          .rows = logits.size(0),
          .classes = logits.size(1),
          .stride = logits.stride(0),
          .targets = targets.const_data_ptr<std::int64_t>()};
}

std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& logits, const at::Tensor& targets) {
  const c10::cuda::CUDAGuard guard(logits.device());
  const at::TensorOptions floats = logits.options().dtype(at::kFloat);
  const at::Tensor losses = at::empty({logits.size(0)}, floats), log_sums = at::empty_like(losses);
  cross_entropy(rows_of(logits, targets), losses.mutable_data_ptr<float>(),
                log_sums.mutable_data_ptr<float>(), at::cuda::getCurrentCUDAStream());
  C10_CUDA_CHECK(cudaGetLastError());
  return {losses, log_sums};
}

at::Tensor backward(const at::Tensor& factor, const at::Tensor& logits, const at::Tensor& targets,
                    const at::Tensor& log_sums) {
  const c10::cuda::CUDAGuard guard(logits.device());
  const at::Tensor rows = at::empty({logits.size(0), logits.stride(0)}, logits.options());
  cross_entropy_backward(rows_of(logits, targets), log_sums.const_data_ptr<float>(),
                         factor.const_data_ptr<float>(), rows.mutable_data_ptr(),
                         at::cuda::getCurrentCUDAStream());
  C10_CUDA_CHECK(cudaGetLastError());
  return rows.narrow(1, 0, logits.size(1));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(scaletrain, library) {
  library.def("fused_cross_entropy(Tensor logits, Tensor targets) -> (Tensor, Tensor)");
  library.def(
      "fused_cross_entropy_backward(Tensor factor, Tensor logits, Tensor targets, Tensor log_sums) "
      "-> Tensor");
}

TORCH_LIBRARY_IMPL(scaletrain, CUDA, library) {
  library.impl("fused_cross_entropy", forward);
  library.impl("fused_cross_entropy_backward", backward);
}

}  // namespace scaletrain::cuda
