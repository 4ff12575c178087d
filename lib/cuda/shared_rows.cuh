// Division of normalized rows over a block's threads: one or several whole warps share a row, and
// each thread holds some quads of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "lib/cuda/values.cuh"

namespace scaletrain::cuda {

constexpr int kMostWarps = 16, kMostThreads = kMostWarps * kWarp;
constexpr int kUsualWarps = 8;  // warps of a block, unless a row needs more

// Four numbers of any type; for fp32 these are 16 bytes, read by one instruction.
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

// Index of the thread's first of `quads` quads; they are a warp's width apart in the warp's part.
__device__ inline int own_begin(int quads) {
  return static_cast<int>(threadIdx.x / kWarp * kWarp * quads + threadIdx.x % kWarp);
}

// Sums `own` over the blockDim.x threads (whole warps) of each of the block's blockDim.y rows.
// `of_warps` must not be used for anything else before the block's next barrier.
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

// Divides rows of `all` quads over a block's threads, at most `most` quads for each thread.
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

// Calls run(std::integral_constant) with the smallest instantiated number >= `quads`.
template <int kMost, class Run>
void for_quads(int quads, Run run) {
  if (quads <= 2) return run(std::integral_constant<int, 2>{});
  if (quads <= 4) return run(std::integral_constant<int, 4>{});
  if (kMost == 6 || quads <= 6) return run(std::integral_constant<int, 6>{});
  run(std::integral_constant<int, kMost>{});
}

}  // namespace scaletrain::cuda
