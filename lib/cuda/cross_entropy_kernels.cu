#include <algorithm>
#include <cassert>

#include "lib/cuda/cross_entropy_kernels.h"
#include "lib/cuda/values.cuh"

namespace scaletrain::cuda {
namespace {

constexpr int kMostThreads = 512;

// Largest x seen so far, and the sum of exp(x - most).
struct SumOfExps {
  float most, sum;
};

__device__ SumOfExps join(SumOfExps a, SumOfExps b) {
  const float most = fmaxf(a.most, b.most);
  if (most == -INFINITY) return a;  // both are empty, or all values are minus infinity
  return {most, a.sum * expf(a.most - most) + b.sum * expf(b.most - most)};
}

__device__ SumOfExps join_lanes(SumOfExps one) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    one = join(one,
               {__shfl_xor_sync(~0U, one.most, distance), __shfl_xor_sync(~0U, one.sum, distance)});
  }
  return one;
}

// Reduces over all threads of the block; its first warp gets the result.
__device__ SumOfExps join_threads(SumOfExps own) {
  __shared__ SumOfExps of_warps[kMostThreads / kWarp];
  own = join_lanes(own);
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (lane == 0) of_warps[warp] = own;
  __syncthreads();
  return join_lanes(lane < blockDim.x / kWarp ? of_warps[lane] : SumOfExps{-INFINITY, 0});
}

// Calls each(pack, its first column) for the packs of a row, then one(column) for the rest, divided
// over the block's threads; uses no packs if rows are not aligned to 16 bytes.
template <class T, class Each, class One>
__device__ void for_row(const T* row, std::int64_t columns, bool aligned, Each each, One one) {
  const std::int64_t packs = aligned ? columns / Pack<T>::kCount : 0;
  for (std::int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    each(reinterpret_cast<const Pack<T>*>(row)[i], i * Pack<T>::kCount);
  }
  for (std::int64_t i = packs * Pack<T>::kCount + threadIdx.x; i < columns; i += blockDim.x) one(i);
}

template <class T>
__global__ void forward(const T* logits, std::int64_t classes, std::int64_t stride, bool aligned,
                        const std::int64_t* targets, float* losses, float* log_sums) {
  const std::int64_t row = blockIdx.x;
  const T* const values = logits + row * stride;
  SumOfExps own{-INFINITY, 0};
  for_row(
      values, classes, aligned,
      [&](const Pack<T>& pack, std::int64_t) {
        float most = own.most;
        for (const T value : pack.values) most = fmaxf(most, wide(value));
        if (most == -INFINITY) return;
        float sum = own.sum * expf(own.most - most);
        for (const T value : pack.values) sum += expf(wide(value) - most);
        own = {most, sum};
      },
      [&](std::int64_t i) {
        own = join(own, {wide(values[i]), 1});
      });
  own = join_threads(own);
  if (threadIdx.x != 0) return;
  const std::int64_t target = targets[row];
  const float log_sum = own.most + logf(own.sum);
  log_sums[row] = log_sum;
  if (target == kIgnoredTarget) {
    losses[row] = 0;
  } else {
    assert(target >= 0 && target < classes);
    losses[row] = log_sum - wide(values[target]);
  }
}

template <class T>
__global__ void backward(const T* logits, std::int64_t classes, std::int64_t stride, bool aligned,
                         const std::int64_t* targets, const float* log_sums, const float* factor,
                         T* gradients) {
  const std::int64_t row = blockIdx.x, target = targets[row];
  const T* const values = logits + row * stride;
  T* const to = gradients + row * stride;
  const float log_sum = log_sums[row], scale = target == kIgnoredTarget ? 0 : *factor;
  const auto gradient = [&](T value, std::int64_t column) {
    const float share = expf(wide(value) - log_sum);
    return as<T>(scale == 0 ? 0 : (column == target ? share - 1 : share) * scale);
  };
  for_row(
      values, classes, aligned,
      [&](const Pack<T>& pack, std::int64_t first) {
        Pack<T> result;
        for (int i = 0; i < Pack<T>::kCount; ++i)
          result.values[i] = gradient(pack.values[i], first + i);
        reinterpret_cast<Pack<T>*>(to)[first / Pack<T>::kCount] = result;
      },
      [&](std::int64_t i) { to[i] = gradient(values[i], i); });
  for (std::int64_t i = classes + threadIdx.x; i < stride; i += blockDim.x) to[i] = as<T>(0);
}

template <class T>
bool is_aligned(const CrossEntropyRows& on) {
  return on.stride % Pack<T>::kCount == 0 &&
         reinterpret_cast<std::uintptr_t>(on.logits) % sizeof(Pack<T>) == 0;
}

unsigned threads_for(std::int64_t packs) {
  const std::int64_t warps = std::max<std::int64_t>(1, (packs + kWarp - 1) / kWarp);
  return static_cast<unsigned>(std::min<std::int64_t>(warps * kWarp, kMostThreads));
}

template <class T>
void run_forward(const CrossEntropyRows& on, float* losses, float* log_sums, cudaStream_t stream) {
  forward<<<static_cast<unsigned>(on.rows), threads_for(on.classes / Pack<T>::kCount), 0, stream>>>(
      static_cast<const T*>(on.logits), on.classes, on.stride, is_aligned<T>(on), on.targets,
      losses, log_sums);
}

template <class T>
void run_backward(const CrossEntropyRows& on, const float* log_sums, const float* factor,
                  void* gradients, cudaStream_t stream) {
  const bool aligned =
      is_aligned<T>(on) && reinterpret_cast<std::uintptr_t>(gradients) % sizeof(Pack<T>) == 0;
  backward<<<static_cast<unsigned>(on.rows), threads_for(on.classes / Pack<T>::kCount), 0,
             stream>>>(static_cast<const T*>(on.logits), on.classes, on.stride, aligned, on.targets,
                       log_sums, factor, static_cast<T*>(gradients));
}

}  // namespace

void cross_entropy(const CrossEntropyRows& on, float* losses, float* log_sums,
                   cudaStream_t stream) {
  for_type(on.type,
           [&](auto value) { run_forward<decltype(value)>(on, losses, log_sums, stream); });
}

void cross_entropy_backward(const CrossEntropyRows& on, const float* log_sums, const float* factor,
                            void* gradients, cudaStream_t stream) {
  for_type(on.type, [&](auto value) {
    run_backward<decltype(value)>(on, log_sums, factor, gradients, stream);
  });
}

}  // namespace scaletrain::cuda
