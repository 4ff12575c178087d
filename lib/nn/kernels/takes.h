// Chooses the tensors that the kernels of this folder take; ATen does the same for all others.
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

#include <cstdint>

#include "lib/core/cpu.h"

namespace scaletrain::nn::kernels {

constexpr std::int64_t kGrain = 1 << 14;  // elements for each thread

// True for fp32 tensors on a CPU with the kernels' instructions, in operations that autocast does
// not cast.
inline bool is_fp32(const at::Tensor& tensor) {
  return core::has_avx2() && tensor.is_cpu() && tensor.scalar_type() == at::kFloat;
}

// Like is_fp32(), and autocast is off.
inline bool takes(const at::Tensor& tensor) {
  return is_fp32(tensor) && !at::autocast::is_autocast_enabled(at::kCPU);
}

// True for bf16 tensors on a CPU with the kernels' instructions.
inline bool is_bf16(const at::Tensor& tensor) {
  return core::has_avx512() && tensor.is_cpu() && tensor.scalar_type() == at::kBFloat16;
}

// Returns `gradient` in the memory layout of `like`, which is dense.
inline at::Tensor laid_out_as(const at::Tensor& like, const at::Tensor& gradient) {
  if (gradient.strides() == like.strides()) return gradient;
  return at::empty_like(like).copy_(gradient);
}

}  // namespace scaletrain::nn::kernels
