#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "lib/cuda/batch_norm_kernels.h"
#include "lib/cuda/channel_walk.cuh"
#include "lib/cuda/values.cuh"

namespace scaletrain::cuda {
namespace {

// Number of values, their mean, and the sum of their squared deviations from it.
struct Moments {
  float count, mean, squares;
};

// Merges two sets of values (Chan, Golub and LeVeque, Updating Formulae, 1979).
__device__ Moments join(Moments a, Moments b) {
  if (b.count == 0) return a;
  const float count = a.count + b.count, share = b.count / count, far = b.mean - a.mean;
  return {count, a.mean + far * share, a.squares + b.squares + far * far * a.count * share};
}

// means, squares: [chunks, channels]. A thread sums deviations from its first value, which is
// stable.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads, kBlocks)
    gather_moments(const Pack<T, kCount>* values, Split split, float* means, float* squares) {
  __shared__ Slots<kCount> slots[2];
  const Walk walk = Walk::along(split, std::integral_constant<int, kCount>(), Order::kDown);
  if (walk.count > 0) {
    float first[kCount], sum[kCount] = {}, square[kCount] = {};
    const Pack<T, kCount> one = values[walk.from];
    for (int i = 0; i < kCount; ++i) first[i] = wide(one.values[i]);
    for_columns<4>(
        walk, [&](std::int64_t i) { return values[i]; },
        [&](const Pack<T, kCount>& pack, std::int64_t) {
          for (int i = 0; i < kCount; ++i) {
            const float far = wide(pack.values[i]) - first[i];
            sum[i] += far;
            square[i] += far * far;
          }
        });
    const float count = static_cast<float>(walk.count);
    for (int i = 0; i < kCount; ++i) {
      const float mean = sum[i] / count;
      slots[0].own(i) = first[i] + mean;
      slots[1].own(i) = fmaxf(square[i] - sum[i] * mean, 0);
    }
  }
  __syncthreads();
  for_channels_of_block<kCount>(split, [&](int place, int channel) {
    const int chunk = static_cast<int>(blockIdx.y);
    Moments all{0, 0, 0};
    for (int row = 0; row < split.height; ++row, place += split.width) {
      all = join(
          all, {split.rows_of_thread(chunk, row), slots[0].values[place], slots[1].values[place]});
    }
    means[chunk * split.channels + channel] = all.mean;
    squares[chunk * split.channels + channel] = all.squares;
  });
}

__global__ void end_moments(const float* means, const float* squares, Split split, float eps,
                            BatchNormRunning running, float* mean, float* inverse_deviation) {
  const int channel = static_cast<int>(blockIdx.x * kTile + threadIdx.x);
  const bool is_one = channel < split.channels;
  const Moments all =
      join_chunks(is_one ? split.chunks : 0, Moments{0, 0, 0}, [&](int chunk) -> Moments {
        const int place = chunk * split.channels + channel;
        return {split.rows_of_chunk(chunk), means[place], squares[place]};
      });
  if (!is_one || threadIdx.y != 0) return;
  const float rows = static_cast<float>(split.rows);
  mean[channel] = all.mean;
  inverse_deviation[channel] = 1 / sqrtf(all.squares / rows + eps);
  if (running.mean == nullptr) return;
  const float keeps = 1 - running.momentum, unbiased = all.squares / (rows - 1);
  running.mean[channel] = keeps * running.mean[channel] + running.momentum * all.mean;
  running.variance[channel] = keeps * running.variance[channel] + running.momentum * unbiased;
}

// Normalizes with weight and bias; forward and backward get the same bits from it.
__device__ float normalised(float far, float scale, float bias) { return fmaf(far, scale, bias); }

// Per-channel constants of the channels that a thread handles.
template <int kCount>
struct OfChannels {
  float mean[kCount], scale[kCount], bias[kCount];

  __device__ OfChannels(const BatchNormChannels& all, int channel) {
    for (int i = 0; i < kCount; ++i) {
      mean[i] = all.mean[channel + i];
      scale[i] = all.inverse_deviation[channel + i] * all.weight[channel + i];
      bias[i] = all.bias[channel + i];
    }
  }
};

template <class T, int kCount, int kMaps>
struct Columns {
  Pack<T, kCount> of[kMaps];
};

// `floor`: 0 for ReLU, minus infinity without.
template <class T, int kCount, bool kHasResidual>
__global__ void __launch_bounds__(kThreads, kBlocks)
    normalise(const Pack<T, kCount>* values, const Pack<T, kCount>* residual, Split split,
              BatchNormChannels channels, float floor, Pack<T, kCount>* output) {
  const Walk walk = Walk::along(split, std::integral_constant<int, kCount>(), Order::kUp);
  if (walk.count == 0) return;
  const OfChannels<kCount> own(channels, walk.channel);
  for_columns<kHasResidual ? 2 : 4>(
      walk,
      [&](std::int64_t i) {
        Columns<T, kCount, kHasResidual ? 2 : 1> columns;
        columns.of[0] = values[i];
        if constexpr (kHasResidual) columns.of[1] = residual[i];
        return columns;
      },
      [&](const auto& columns, std::int64_t at) {
        Pack<T, kCount> result;
        for (int i = 0; i < kCount; ++i) {
          const float far = wide(columns.of[0].values[i]) - own.mean[i];
          float value = normalised(far, own.scale[i], own.bias[i]);
          if constexpr (kHasResidual) value += wide(columns.of[1].values[i]);
          result.values[i] = as<T>(value < floor ? floor : value);
        }
        output[at] = result;
      });
}

// Sums of the gradients behind the ReLU, and of their products with the values' deviations from the
// mean: [chunks, channels]. With a residual it also writes these gradients.
template <class T, int kCount, bool kHasResidual>
__global__ void __launch_bounds__(kThreads, kBlocks)
    gather_gradients(const Pack<T, kCount>* values, const Pack<T, kCount>* gradients,
                     const Pack<T, kCount>* output, Split split, BatchNormChannels channels,
                     float floor, Pack<T, kCount>* of_residual, float* sums, float* products) {
  __shared__ Slots<kCount> slots[2];
  const Walk walk = Walk::along(split, std::integral_constant<int, kCount>(), Order::kDown);
  float sum[kCount] = {}, product[kCount] = {};
  if (walk.count > 0) {
    const OfChannels<kCount> own(channels, walk.channel);
    for_columns<2>(
        walk,
        [&](std::int64_t i) {
          Columns<T, kCount, kHasResidual ? 3 : 2> columns;
          columns.of[0] = values[i];
          columns.of[1] = gradients[i];
          if constexpr (kHasResidual) columns.of[2] = output[i];
          return columns;
        },
        [&](const auto& columns, std::int64_t at) {
          Pack<T, kCount> passed = columns.of[1];
          for (int i = 0; i < kCount; ++i) {
            const float far = wide(columns.of[0].values[i]) - own.mean[i];
            float behind = 0;
            if constexpr (kHasResidual) {
              behind = wide(columns.of[2].values[i]);
            } else {
              behind = normalised(far, own.scale[i], own.bias[i]);
            }
            const float gradient = behind <= floor ? 0 : wide(passed.values[i]);
            sum[i] += gradient;
            product[i] += gradient * far;
            if constexpr (kHasResidual) passed.values[i] = as<T>(gradient);
          }
          if constexpr (kHasResidual) of_residual[at] = passed;
        });
  }
  for (int i = 0; i < kCount; ++i) {
    slots[0].own(i) = sum[i];
    slots[1].own(i) = product[i];
  }
  __syncthreads();
  for_channels_of_block<kCount>(split, [&](int place, int channel) {
    float all = 0, products_of_all = 0;
    for (int row = 0; row < split.height; ++row, place += split.width) {
      all += slots[0].values[place];
      products_of_all += slots[1].values[place];
    }
    const int to = static_cast<int>(blockIdx.y) * split.channels + channel;
    sums[to] = all;
    products[to] = products_of_all;
  });
}

struct Sums {
  float gradients, products;
};

__device__ Sums join(Sums a, Sums b) {
  return {a.gradients + b.gradients, a.products + b.products};
}

__global__ void end_gradients(const float* sums, const float* products, Split split,
                              const float* inverse_deviation, float* of_weight, float* of_bias) {
  const int channel = static_cast<int>(blockIdx.x * kTile + threadIdx.x);
  const bool is_one = channel < split.channels;
  const Sums all = join_chunks(is_one ? split.chunks : 0, Sums{0, 0}, [&](int chunk) -> Sums {
    const int place = chunk * split.channels + channel;
    return {sums[place], products[place]};
  });
  if (!is_one || threadIdx.y != 0) return;
  of_bias[channel] = all.gradients;
  of_weight[channel] = all.products * inverse_deviation[channel];
}

// weight * inverse_deviation * (gradient - mean of the gradients - normalized value * mean of
// gradient times normalized value): Ioffe and Szegedy, Batch Normalization, 2015, section 3.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads, kBlocks)
    value_gradients(const Pack<T, kCount>* values, const Pack<T, kCount>* gradients, Split split,
                    BatchNormChannels channels, float floor, const float* of_weight,
                    const float* of_bias, Pack<T, kCount>* of_values) {
  const Walk walk = Walk::along(split, std::integral_constant<int, kCount>(), Order::kUp);
  if (walk.count == 0) return;
  const OfChannels<kCount> own(channels, walk.channel);
  const float rows = static_cast<float>(split.rows);
  float mean[kCount], slope[kCount];
  for (int i = 0; i < kCount; ++i) {
    const int channel = walk.channel + i;
    mean[i] = of_bias[channel] / rows;
    slope[i] = -channels.inverse_deviation[channel] * of_weight[channel] / rows;
  }
  for_columns<2>(
      walk,
      [&](std::int64_t i) {
        return Columns<T, kCount, 2>{{values[i], gradients[i]}};
      },
      [&](const auto& columns, std::int64_t at) {
        Pack<T, kCount> result;
        for (int i = 0; i < kCount; ++i) {
          const float far = wide(columns.of[0].values[i]) - own.mean[i];
          const float gradient = normalised(far, own.scale[i], own.bias[i]) <= floor
                                     ? 0
                                     : wide(columns.of[1].values[i]);
          result.values[i] = as<T>(own.scale[i] * fmaf(far, slope[i], gradient - mean[i]));
        }
        of_values[at] = result;
      });
}

// Calls run(a value of the dtype, channels that a thread reads at once): 16 bytes if rows and all
// `maps` are aligned to them, else one channel.
template <class Run>
void for_packs(const BatchNormMap& map, std::initializer_list<const void*> maps, Run run) {
  for_type(map.type, [&](auto value) {
    constexpr int kPack = 16 / sizeof(value);
    const bool aligned =
        map.channels % kPack == 0 && std::all_of(maps.begin(), maps.end(), [](const void* one) {
          return reinterpret_cast<std::uintptr_t>(one) % 16 == 0;
        });
    if (aligned) {
      run(value, std::integral_constant<int, kPack>());
    } else {
      run(value, std::integral_constant<int, 1>());
    }
  });
}

template <class T, int kCount>
struct Maps {
  static const Pack<T, kCount>* in(const void* map) {
    return static_cast<const Pack<T, kCount>*>(map);
  }
  static Pack<T, kCount>* out(void* map) { return static_cast<Pack<T, kCount>*>(map); }
};

Launch launch_for(const BatchNormMap& map, int count) {
  return launch_of(map.rows, map.channels, map.multiprocessors, count);
}

// Floats of one of the two sums: one per channel and chunk.
std::int64_t half_workspace(const BatchNormMap& map) {
  return most_chunks(map.channels, map.multiprocessors) * map.channels;
}

float floor_of(bool relu) { return relu ? 0 : -INFINITY; }

}  // namespace

std::int64_t batch_norm_workspace(const BatchNormMap& map) { return 2 * half_workspace(map); }

void batch_norm_statistics(const BatchNormMap& map, float eps, const BatchNormRunning& running,
                           float* workspace, float* mean, float* inverse_deviation,
                           cudaStream_t stream) {
  float* const squares = workspace + half_workspace(map);
  for_packs(map, {map.values}, [&](auto value, auto count) {
    using Map = Maps<decltype(value), count>;
    const Launch launch = launch_for(map, count);
    gather_moments<<<launch.blocks, kThreads, 0, stream>>>(Map::in(map.values), launch.split,
                                                           workspace, squares);
    end_moments<<<launch.end_blocks, dim3(kTile, kTile), 0, stream>>>(
        workspace, squares, launch.split, eps, running, mean, inverse_deviation);
  });
}

void batch_norm_output(const BatchNormMap& map, const BatchNormChannels& channels,
                       const BatchNormOutput& to, cudaStream_t stream) {
  for_packs(map, {map.values, to.residual, to.output}, [&](auto value, auto count) {
    using T = decltype(value);
    using Map = Maps<T, count>;
    const Launch launch = launch_for(map, count);
    const auto kernel =
        to.residual != nullptr ? normalise<T, count, true> : normalise<T, count, false>;
    kernel<<<launch.blocks, kThreads, 0, stream>>>(Map::in(map.values), Map::in(to.residual),
                                                   launch.split, channels, floor_of(to.relu),
                                                   Map::out(to.output));
  });
}

void batch_norm_backward(const BatchNormMap& map, const BatchNormChannels& channels,
                         const BatchNormGradients& gradients, float* workspace,
                         cudaStream_t stream) {
  float* const products = workspace + half_workspace(map);
  const bool has_residual = gradients.output != nullptr;
  for_packs(map,
            {map.values, gradients.of_output, gradients.output, gradients.of_residual,
             gradients.of_values},
            [&](auto value, auto count) {
              using T = decltype(value);
              using Map = Maps<T, count>;
              const Launch launch = launch_for(map, count);
              const auto gather = has_residual ? gather_gradients<T, count, true>
                                               : gather_gradients<T, count, false>;
              gather<<<launch.blocks, kThreads, 0, stream>>>(
                  Map::in(map.values), Map::in(gradients.of_output), Map::in(gradients.output),
                  launch.split, channels, floor_of(gradients.relu), Map::out(gradients.of_residual),
                  workspace, products);
              end_gradients<<<launch.end_blocks, dim3(kTile, kTile), 0, stream>>>(
                  workspace, products, launch.split, channels.inverse_deviation,
                  gradients.of_weight, gradients.of_bias);
              if (gradients.of_values == nullptr) return;
              // The residual's gradient has passed the ReLU already.
              value_gradients<<<launch.blocks, kThreads, 0, stream>>>(
                  Map::in(map.values),
                  Map::in(has_residual ? gradients.of_residual : gradients.of_output), launch.split,
                  channels, floor_of(gradients.relu && !has_residual), gradients.of_weight,
                  gradients.of_bias, Map::out(gradients.of_values));
            });
}

}  // namespace scaletrain::cuda
