// Work division of channels-last maps [rows, channels]: tiles of channels and chunks of rows, so
// that maps with few channels or few rows still fill a device.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace scaletrain::cuda {

constexpr int kThreads = 256;
constexpr int kBlocks = 3;        // resident blocks per multiprocessor
constexpr int kRowsOfThread = 4;  // least rows of a thread if there are several blocks
constexpr int kTile = 32;         // channels of a block that finishes sums, and threads per channel

// Assignment of work to blocks and threads. A row has `columns` packs of channels that a thread
// reads at once. A block handles `width` of these in `height` rows, then in the rows that follow
// `chunks` * `height` further on.
struct Split {
  std::int64_t rows;
  int channels, columns, width, height, chunks;
  std::int64_t full;  // loop iterations in which all chunks have rows
  int rest;           // rows left after these

  __device__ float rows_of_thread(int chunk, int row) const {
    return static_cast<float>(full + (chunk * height + row < rest ? 1 : 0));
  }
  __device__ float rows_of_chunk(int chunk) const {
    return static_cast<float>(full * height + min(max(rest - chunk * height, 0), height));
  }
};

enum class Order { kUp, kDown };

// One thread's columns, over its rows; empty for threads without work. A map that is read twice is
// read once upwards and once downwards, so that its last part is still in the cache.
struct Walk {
  std::int64_t from = 0, step = 0, count = 0;
  int channel = 0;

  template <int kCount>
  __device__ static Walk along(const Split& split, std::integral_constant<int, kCount>,
                               Order order) {
    const int row = static_cast<int>(threadIdx.x) / split.width;
    const int column = static_cast<int>(blockIdx.x * split.width + threadIdx.x % split.width);
    const int chunk = static_cast<int>(blockIdx.y);
    if (row >= split.height || column >= split.columns) return {};
    Walk walk;
    walk.channel = column * kCount;
    walk.count = split.full + (chunk * split.height + row < split.rest ? 1 : 0);
    walk.from = static_cast<std::int64_t>(chunk * split.height + row) * split.columns + column;
    walk.step = static_cast<std::int64_t>(split.chunks) * split.height * split.columns;
    if (order == Order::kDown) {
      walk.from += (walk.count - 1) * walk.step;
      walk.step = -walk.step;
    }
    return walk;
  }
};

// Calls use(load(i), i) for the columns i of a walk; loads kBatch of them before it uses the first.
template <int kBatch, class Load, class Use>
__device__ void for_columns(const Walk& walk, Load load, Use use) {
  std::int64_t left = walk.count, i = walk.from;
  for (; left >= kBatch; left -= kBatch, i += kBatch * walk.step) {
    decltype(load(i)) loaded[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) loaded[j] = load(i + j * walk.step);
#pragma unroll
    for (int j = 0; j < kBatch; ++j) use(loaded[j], i + j * walk.step);
  }
  for (; left > 0; --left, i += walk.step) use(load(i), i);
}

// Shared memory for one number per channel of each thread, which other threads then reduce.
template <int kCount>
struct Slots {
  float values[kCount * kThreads];

  __device__ float& own(int i) { return values[i * kThreads + static_cast<int>(threadIdx.x)]; }
};

// Calls join(index into Slots::values for row 0 of the block, channel) on one thread for each
// channel of the block; the index of the next row is `width` larger.
template <int kCount, class Join>
__device__ void for_channels_of_block(const Split& split, Join join) {
  const int thread = static_cast<int>(threadIdx.x);
  const int value = thread / split.width, column = thread % split.width;
  const int of_row = static_cast<int>(blockIdx.x) * split.width + column;
  if (value < kCount && of_row < split.columns) {
    join(value * kThreads + column, of_row * kCount + value);
  }
}

// Reduces of(chunk) over the chunks in blocks of [kTile, kTile] threads; threads of row 0 hold the
// result. `empty` is the neutral element.
template <class One, class Of>
__device__ One join_chunks(int chunks, One empty, Of of) {
  __shared__ One parts[kTile][kTile];
  const int row = static_cast<int>(threadIdx.y);
  One own = empty;
  for (int chunk = row; chunk < chunks; chunk += kTile) own = join(own, of(chunk));
  parts[row][threadIdx.x] = own;
  for (int half = kTile / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row < half) {
      own = join(own, parts[row + half][threadIdx.x]);
      parts[row][threadIdx.x] = own;
    }
  }
  return own;
}

inline std::int64_t up(std::int64_t number, std::int64_t by) { return (number + by - 1) / by; }

inline std::int64_t most_chunks(std::int64_t channels, int multiprocessors) {
  return std::max<std::int64_t>(1, kBlocks * multiprocessors / up(channels, kThreads));
}

struct Launch {
  Split split;
  dim3 blocks, end_blocks;
};

// `count`: channels that a thread reads at once.
inline Launch launch_of(std::int64_t rows, std::int64_t channels, int multiprocessors, int count) {
  Launch launch{};
  Split& split = launch.split;
  const std::int64_t columns = channels / count, tiles = up(columns, kThreads / count);
  split.rows = rows;
  split.channels = static_cast<int>(channels);
  split.columns = static_cast<int>(columns);
  split.width = static_cast<int>(up(columns, tiles));
  split.height = kThreads / split.width;
  split.chunks = static_cast<int>(std::min(most_chunks(channels, multiprocessors),
                                           up(rows, std::int64_t{kRowsOfThread} * split.height)));
  const std::int64_t turn = std::int64_t{split.chunks} * split.height;
  split.full = rows / turn;
  split.rest = static_cast<int>(rows % turn);
  launch.blocks = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(split.chunks));
  launch.end_blocks = dim3(static_cast<unsigned>(up(channels, kTile)));
  return launch;
}

}  // namespace scaletrain::cuda
