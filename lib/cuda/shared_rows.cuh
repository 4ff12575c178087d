// How the threads of a block share rows that are normalised: whole warps have a row, and each of
// their threads holds its quads of numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "lib/cuda/values.cuh"

namespace scaletrain::cuda {

constexpr int kMostWarps = 16, kMostThreads = kMostWarps * kWarp;
constexpr int kUsualWarps = 8;  // of a block, unless a row takes more

// Four numbers, whatever their type: in fp32 what one instruction reads.
template <class T>
using Quad = Pack<T, 4>;

template <class T>
__device__ Quad<T> quad(const T* values, std::int64_t i) {
  return reinterpret_cast<const Quad<T>*>(values)[i];
}

template <class T>
__device__ void set_quad(T* values, std::int64_t i, const Quad<T>& to) {
  reinterpret_cast<Quad<T>*>(values)[i] = to;
}

// The first of a thread's `quads` in a row, a warp's width apart: each warp has a part of the row.
__device__ inline int own_begin(int quads) {
  return static_cast<int>(threadIdx.x / kWarp * kWarp * quads + threadIdx.x % kWarp);
}

// A block works on blockDim.y rows at once, with blockDim.x threads, which are whole warps, each.
// `of_warps` is nobody else's until all threads have met a barrier again.
__device__ inline float row_sum(float own, float* of_warps) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    own += __shfl_xor_sync(~0U, own, distance);
  }
  if (blockDim.x == kWarp) return own;
  const unsigned warps = blockDim.x / kWarp;
  float* const of_row = of_warps + threadIdx.y * warps;
  if (threadIdx.x % kWarp == 0) of_row[threadIdx.x / kWarp] = own;
  __syncthreads();
  own = 0;
  for (unsigned i = 0; i < warps; ++i) own += of_row[i];
  return own;
}

// How the threads of a block divide rows of so many quads, of which each holds `most` at most.
struct Division {
  int warps = 1, quads = 0;

  Division(std::int64_t all, int most) {
    while (all > static_cast<std::int64_t>(warps) * kWarp * most) warps *= 2;
    quads = static_cast<int>((all + warps * kWarp - 1) / (warps * kWarp));
  }
  bool fits() const { return warps <= kMostWarps; }
  unsigned rows() const { return static_cast<unsigned>(std::max(1, kUsualWarps / warps)); }
  dim3 block() const { return {static_cast<unsigned>(warps * kWarp), rows(), 1}; }

  std::int64_t blocks(std::int64_t all_rows) const { return (all_rows + rows() - 1) / rows(); }
};

// Calls run(std::integral_constant) for the least number of quads that there are kernels for.
template <int kMost, class Run>
void for_quads(int quads, Run run) {
  if (quads <= 2) return run(std::integral_constant<int, 2>{});
  if (quads <= 4) return run(std::integral_constant<int, 4>{});
  if (kMost == 6 || quads <= 6) return run(std::integral_constant<int, 6>{});
  run(std::integral_constant<int, kMost>{});
}

}  // namespace scaletrain::cuda
