// Loads and stores of kernels: 16 bytes at a time, converted to fp32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "lib/cuda/value_type.h"

namespace scaletrain::cuda {

constexpr int kWarp = 32;

__device__ inline float wide(float value) { return value; }
__device__ inline float wide(__half value) { return __half2float(value); }
__device__ inline float wide(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class T>
__device__ T as(float value);
template <>
__device__ inline float as(float value) {
  return value;
}
template <>
__device__ inline __half as(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline __nv_bfloat16 as(float value) {
  return __float2bfloat16_rn(value);
}

// Adjacent numbers read by one instruction: 16 bytes, unless kNumbers is given.
template <class T, int kNumbers = 16 / sizeof(T)>
struct alignas(kNumbers * sizeof(T)) Pack {
  static constexpr int kCount = kNumbers;
  T values[kNumbers];
};

// Calls run(a value of the type), as in `run([](auto value) { using T = decltype(value); ... })`.
template <class Run>
void for_type(ValueType type, Run run) {
  switch (type) {
    case ValueType::kFloat:
      return run(float{});
    case ValueType::kHalf:
      return run(__half{});
    case ValueType::kBFloat16:
      return run(__nv_bfloat16{});
  }
}

}  // namespace scaletrain::cuda
