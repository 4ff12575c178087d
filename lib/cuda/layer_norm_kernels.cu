#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "lib/cuda/layer_norm_kernels.h"
#include "lib/cuda/shared_rows.cuh"
#include "lib/cuda/values.cuh"

namespace scaletrain::cuda {
namespace {

constexpr int kMostForward = 8, kMostBackward = 6;  // quads of a row in a thread's registers
constexpr int kPlainThreads = 256;

template <class X, class B, class O>
struct Forward {
  const X* __restrict__ input;
  const B* __restrict__ branch;
  const float* __restrict__ weight;
  const float* __restrict__ bias;
  X* sum;
  O* output;
  float *means, *scales;
  std::int64_t rows;
  int channels;
  float eps;
};

// Threads hold the row in registers: kQuads packs of four channels each.
template <class X, class B, class O, int kQuads>
__global__ void __launch_bounds__(kMostThreads) held_forward(Forward<X, B, O> on) {
  __shared__ float of_means[kMostWarps], of_squares[kMostWarps];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const int quads = on.channels / 4, begin_at = own_begin(kQuads);
  const std::int64_t first = row * quads;
  const auto for_own = [&](auto run) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int at = begin_at + i * kWarp;
      if (at < quads && row < on.rows) run(i, at);
    }
  };
  Quad<X> held[kQuads];
  for_own([&](int i, int at) { held[i] = quad(on.input, first + at); });
  if (on.branch != nullptr) {
    Quad<B> added[kQuads];
    for_own([&](int i, int at) { added[i] = quad(on.branch, first + at); });
    for_own([&](int i, int at) {
      for (int j = 0; j < 4; ++j) {
        held[i].values[j] = as<X>(wide(held[i].values[j]) + wide(added[i].values[j]));
      }
      set_quad(on.sum, first + at, held[i]);
    });
  }
  float own = 0;
  for_own([&](int i, int) {
    for (const X value : held[i].values) own += wide(value);
  });
  const float mean = row_sum(own, of_means) / static_cast<float>(on.channels);
  own = 0;
  for_own([&](int i, int) {
    for (const X value : held[i].values) own += (wide(value) - mean) * (wide(value) - mean);
  });
  const float variance = row_sum(own, of_squares) / static_cast<float>(on.channels);
  const float scale = rsqrtf(variance + on.eps);
  if (threadIdx.x == 0 && row < on.rows) {
    on.means[row] = mean;
    on.scales[row] = scale;
  }
  for_own([&](int i, int at) {
    const Quad<float> weight = quad(on.weight, at), bias = quad(on.bias, at);
    Quad<O> result;
    for (int j = 0; j < 4; ++j) {
      const float value = (wide(held[i].values[j]) - mean) * scale;
      result.values[j] = as<O>(value * weight.values[j] + bias.values[j]);
    }
    set_quad(on.output, first + at, result);
  });
}

// For rows of any length and alignment: one block per row, which reads the row three times.
template <class X, class B, class O>
__global__ void plain_forward(Forward<X, B, O> on) {
  __shared__ float of_means[kMostWarps], of_squares[kMostWarps];
  const std::int64_t row = blockIdx.x, first = row * on.channels;
  const X* const values = on.branch == nullptr ? on.input + first : on.sum + first;
  float own = 0;
  for (int i = threadIdx.x; i < on.channels; i += blockDim.x) {
    if (on.branch != nullptr) {
      on.sum[first + i] = as<X>(wide(on.input[first + i]) + wide(on.branch[first + i]));
    }
    own += wide(values[i]);
  }
  const float mean = row_sum(own, of_means) / static_cast<float>(on.channels);
  own = 0;
  for (int i = threadIdx.x; i < on.channels; i += blockDim.x) {
    own += (wide(values[i]) - mean) * (wide(values[i]) - mean);
  }
  const float variance = row_sum(own, of_squares) / static_cast<float>(on.channels);
  const float scale = rsqrtf(variance + on.eps);
  if (threadIdx.x == 0) {
    on.means[row] = mean;
    on.scales[row] = scale;
  }
  for (int i = threadIdx.x; i < on.channels; i += blockDim.x) {
    on.output[first + i] = as<O>((wide(values[i]) - mean) * scale * on.weight[i] + on.bias[i]);
  }
}

template <class X, class B, class O>
struct Backward {
  const O* __restrict__ of_output;
  const X* __restrict__ of_sum;
  const X* __restrict__ input;
  const float* __restrict__ means;
  const float* __restrict__ scales;
  const float* weight;
  X* of_input;
  B* of_branch;
  float* partial_sums;
  std::int64_t rows;
  int channels;
};

// With u = gradient * weight and n = normalized row: scale * (u - mean(u) - n * mean(u * n)).
struct RowBackward {
  float mean, scale, mean_of_u, mean_of_u_n;

  __device__ float normalised(float value) const { return (value - mean) * scale; }
  __device__ float of_input(float u, float n) const {
    return scale * (u - mean_of_u - n * mean_of_u_n);
  }
};

// Sums over the block's rows of threads in order: each row adds its numbers to those left in shared
// memory, and the last one writes the result.
template <int kQuads>
__device__ void add_rows(const Quad<float> (&own)[kQuads], int quads, float4* of_block, float* to) {
  auto* const left = reinterpret_cast<Quad<float>*>(of_block);
  for (unsigned y = 0; y < blockDim.y; ++y) {
    if (threadIdx.y == y) {
      auto* const target = y + 1 < blockDim.y ? left : reinterpret_cast<Quad<float>*>(to);
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const int at = own_begin(kQuads) + i * kWarp;
        if (at >= quads) continue;
        Quad<float> sum{};
        if (y > 0) sum = left[at];
        for (int j = 0; j < 4; ++j) sum.values[j] += own[i].values[j];
        target[at] = sum;
      }
    }
    __syncthreads();
  }
}

// Each block processes its rows and writes its sums for the gradients of weight and bias.
template <class X, class B, class O, int kQuads>
__global__ void __launch_bounds__(kMostThreads, 1) held_backward(Backward<X, B, O> on) {
  extern __shared__ float4 of_block[];  // [2, channels] if the block has several rows of threads
  __shared__ float of_warps[2][2][kMostWarps];
  const int quads = on.channels / 4, begin_at = own_begin(kQuads);
  Quad<float> of_weight[kQuads] = {}, of_bias[kQuads] = {};
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  int turn = 0;  // alternates between two buffers, so that a turn needs no further barrier
  for (std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * blockDim.y; begin < on.rows;
       begin += stride, turn ^= 1) {
    const std::int64_t row = begin + threadIdx.y, first = row * quads;
    const int end = row < on.rows ? quads : 0;
    // Numbers beyond the row stay zero and add nothing to the sums.
    Quad<X> input[kQuads] = {};
    Quad<O> upper[kQuads] = {};
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int at = begin_at + i * kWarp;
      if (at < end) input[i] = quad(on.input, first + at);
    }
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int at = begin_at + i * kWarp;
      if (at < end) upper[i] = quad(on.of_output, first + at);
    }
    RowBackward of_row{};
    if (row < on.rows) of_row = {on.means[row], on.scales[row], 0, 0};
    float u[kQuads][4], n[kQuads][4];
    float of_u = 0, of_u_n = 0;
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int at = begin_at + i * kWarp;
      const Quad<float> weight = quad(on.weight, min(at, quads - 1));
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float gradient = wide(upper[i].values[j]);
        u[i][j] = gradient * weight.values[j];
        n[i][j] = of_row.normalised(wide(input[i].values[j]));
        of_weight[i].values[j] += gradient * n[i][j];
        of_bias[i].values[j] += gradient;
        of_u += u[i][j];
        of_u_n += u[i][j] * n[i][j];
      }
    }
    of_row.mean_of_u = row_sum(of_u, of_warps[turn][0]) / static_cast<float>(on.channels);
    of_row.mean_of_u_n = row_sum(of_u_n, of_warps[turn][1]) / static_cast<float>(on.channels);
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int at = begin_at + i * kWarp;
      if (at >= end) continue;
      Quad<X> of_sum{}, result;
      if (on.of_sum != nullptr) of_sum = quad(on.of_sum, first + at);
      Quad<B> of_branch;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float gradient = of_row.of_input(u[i][j], n[i][j]) + wide(of_sum.values[j]);
        result.values[j] = as<X>(gradient);
        of_branch.values[j] = as<B>(gradient);
      }
      set_quad(on.of_input, first + at, result);
      if (on.of_branch != nullptr) set_quad(on.of_branch, first + at, of_branch);
    }
  }
  if (on.partial_sums == nullptr) return;
  float* const to = on.partial_sums + static_cast<std::int64_t>(blockIdx.x) * on.channels;
  add_rows<kQuads>(of_weight, quads, of_block, to);
  add_rows<kQuads>(of_bias, quads, of_block + quads,
                   to + static_cast<std::int64_t>(gridDim.x) * on.channels);
}

// For rows of any length and alignment, one at a time per block: a thread adds to its channels'
// sums in device memory.
template <class X, class B, class O>
__global__ void plain_backward(Backward<X, B, O> on) {
  __shared__ float of_warps[2][2][kMostWarps];
  const std::int64_t own = static_cast<std::int64_t>(blockIdx.x) * on.channels;
  float* const of_weight = on.partial_sums == nullptr ? nullptr : on.partial_sums + own;
  const std::int64_t to_bias = static_cast<std::int64_t>(gridDim.x) * on.channels;
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < on.rows; row += gridDim.x, turn ^= 1) {
    const std::int64_t first = row * on.channels;
    RowBackward of_row{on.means[row], on.scales[row], 0, 0};
    float of_u = 0, of_u_n = 0;
    for (int i = threadIdx.x; i < on.channels; i += blockDim.x) {
      const float gradient = wide(on.of_output[first + i]);
      const float n = of_row.normalised(wide(on.input[first + i]));
      of_u += gradient * on.weight[i];
      of_u_n += gradient * on.weight[i] * n;
      if (of_weight == nullptr) continue;
      const bool is_first = row == blockIdx.x;
      of_weight[i] = gradient * n + (is_first ? 0 : of_weight[i]);
      of_weight[to_bias + i] = gradient + (is_first ? 0 : of_weight[to_bias + i]);
    }
    of_row.mean_of_u = row_sum(of_u, of_warps[turn][0]) / static_cast<float>(on.channels);
    of_row.mean_of_u_n = row_sum(of_u_n, of_warps[turn][1]) / static_cast<float>(on.channels);
    for (int i = threadIdx.x; i < on.channels; i += blockDim.x) {
      float gradient = of_row.of_input(wide(on.of_output[first + i]) * on.weight[i],
                                       of_row.normalised(wide(on.input[first + i])));
      if (on.of_sum != nullptr) gradient += wide(on.of_sum[first + i]);
      on.of_input[first + i] = as<X>(gradient);
      if (on.of_branch != nullptr) on.of_branch[first + i] = as<B>(gradient);
    }
  }
}

// blockIdx.y: 0: weight, 1: bias. A thread adds the sums of every blockDim.y-th block.
__global__ void add_blocks(const float* partial_sums, std::int64_t blocks, int channels,
                           float* of_weight, float* of_bias) {
  __shared__ float sums[kMostWarps][kWarp];
  const int channel = static_cast<int>(blockIdx.x * kWarp + threadIdx.x);
  const float* const from = partial_sums + blockIdx.y * blocks * channels;
  float own = 0;
  if (channel < channels) {
    for (std::int64_t i = threadIdx.y; i < blocks; i += blockDim.y) {
      own += from[i * channels + channel];
    }
  }
  sums[threadIdx.y][threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
  own = 0;
  for (int i = 0; i < kMostWarps; ++i) own += sums[i][threadIdx.x];
  (blockIdx.y == 0 ? of_weight : of_bias)[channel] = own;
}

// True if all pointers are aligned to quads, or null.
bool is_aligned(const LayerNormRows& on, std::initializer_list<const void*> values) {
  return on.channels % 4 == 0 && std::all_of(values.begin(), values.end(), [](const void* begin) {
           return reinterpret_cast<std::uintptr_t>(begin) % sizeof(Quad<float>) == 0;
         });
}

template <class A, class B>
constexpr bool kSame = std::is_same_v<A, B>;
template <class X, class B, class O>
constexpr bool kHasKernels = kSame<X, float> ? kSame<B, float> || kSame<O, float> || kSame<B, O>
                                             : kSame<B, X> && (kSame<O, X> || kSame<O, float>);

// Calls run(input, branch, output) with values of the types; false if there are no kernels for
// them. (The types have names because GCC 12 takes an outer lambda's parameter for a constant.)
template <class Run>
bool for_types(const LayerNormRows& on, Run run) {
  bool found = false;
  for_type(on.type, [&](auto x) {
    using X = decltype(x);
    for_type(on.branch, [&](auto b) {
      using B = decltype(b);
      for_type(on.output, [&](auto o) {
        using O = decltype(o);
        if constexpr (kHasKernels<X, B, O>) {
          found = true;
          run(X{}, B{}, O{});
        }
      });
    });
  });
  return found;
}

template <class X, class B, class O>
void run_forward(const LayerNormRows& on, const LayerNormForward& with, cudaStream_t stream) {
  const Forward<X, B, O> all{static_cast<const X*>(with.input),
                             static_cast<const B*>(with.branch),
                             on.weight,
                             with.bias,
                             static_cast<X*>(with.sum),
                             static_cast<O*>(with.output),
                             with.means,
                             with.scales,
                             on.rows,
                             static_cast<int>(on.channels),
                             with.eps};
  const Division division(on.channels / 4, kMostForward);
  if (division.fits() &&
      is_aligned(on, {with.input, with.branch, on.weight, with.bias, with.sum, with.output})) {
    for_quads<kMostForward>(division.quads, [&](auto quads) {
      held_forward<X, B, O, decltype(quads)::value>
          <<<static_cast<unsigned>(division.blocks(on.rows)), division.block(), 0, stream>>>(all);
    });
  } else {
    plain_forward<X, B, O><<<static_cast<unsigned>(on.rows), kPlainThreads, 0, stream>>>(all);
  }
}

template <class X, class B, class O>
void run_backward(const LayerNormRows& on, const LayerNormBackward& with, cudaStream_t stream) {
  const Backward<X, B, O> all{static_cast<const O*>(with.of_output),
                              static_cast<const X*>(with.of_sum),
                              static_cast<const X*>(with.input),
                              with.means,
                              with.scales,
                              on.weight,
                              static_cast<X*>(with.of_input),
                              static_cast<B*>(with.of_branch),
                              with.partial_sums,
                              on.rows,
                              static_cast<int>(on.channels)};
  const Division division(on.channels / 4, kMostBackward);
  const auto blocks = static_cast<unsigned>(with.blocks);
  if (division.fits() && is_aligned(on, {with.of_output, with.of_sum, with.input, on.weight,
                                         with.of_input, with.of_branch, with.partial_sums})) {
    const auto shared =
        division.rows() > 1 ? 2 * static_cast<std::size_t>(on.channels) * sizeof(float) : 0;
    for_quads<kMostBackward>(division.quads, [&](auto quads) {
      held_backward<X, B, O, decltype(quads)::value>
          <<<blocks, division.block(), shared, stream>>>(all);
    });
  } else {
    plain_backward<X, B, O><<<blocks, kPlainThreads, 0, stream>>>(all);
  }
  if (with.partial_sums == nullptr) return;
  const dim3 grid(static_cast<unsigned>((on.channels + kWarp - 1) / kWarp), 2);
  add_blocks<<<grid, dim3(kWarp, kMostWarps), 0, stream>>>(
      with.partial_sums, with.blocks, static_cast<int>(on.channels), with.of_weight, with.of_bias);
}

}  // namespace

bool LayerNormRows::takes_types() const {
  return for_types(*this, [](auto, auto, auto) {});
}

void layer_norm(const LayerNormRows& on, const LayerNormForward& forward, cudaStream_t stream) {
  for_types(on, [&](auto x, auto b, auto o) {
    run_forward<decltype(x), decltype(b), decltype(o)>(on, forward, stream);
  });
}

std::int64_t layer_norm_blocks(const LayerNormRows& on, int processors) {
  const Division division(on.channels / 4, kMostBackward);
  const std::int64_t at_once = division.warps > kUsualWarps ? 1 : 2;
  return std::min(division.blocks(on.rows), at_once * processors);
}

void layer_norm_backward(const LayerNormRows& on, const LayerNormBackward& backward,
                         cudaStream_t stream) {
  for_types(on, [&](auto x, auto b, auto o) {
    run_backward<decltype(x), decltype(b), decltype(o)>(on, backward, stream);
  });
}

}  // namespace scaletrain::cuda
