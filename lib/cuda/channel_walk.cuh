// How blocks and threads divide a channels-last map [rows, channels]: by tiles of channels and
// chunks of rows, so that maps of few channels and maps of few rows fill a device.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace scaletrain::cuda {

constexpr int kThreads = 256;
constexpr int kBlocks = 3;        // on a multiprocessor at a time
constexpr int kRowsOfThread = 4;  // at least, where there are several blocks
constexpr int kTile = 32;         // channels, and parts of their sums, of a block that ends a sum

// Which block and thread sees what. A row has `columns` of as many channels as a thread reads at
// once; a block has `width` of these and `height` rows, then the rows `chunks` * `height` further.
struct Split {
  std::int64_t rows;
  int channels, columns, width, height, chunks;
  std::int64_t full;  // turns in which all chunks see rows
  int rest;           // rows behind these

  __device__ float rows_of_thread(int chunk, int row) const {
    return static_cast<float>(full + (chunk * height + row < rest ? 1 : 0));
  }
  __device__ float rows_of_chunk(int chunk) const {
    return static_cast<float>(full * height + min(max(rest - chunk * height, 0), height));
  }
};

enum class Order { kUp, kDown };

// A thread's columns, counted through the rows; none for a thread beyond the block's or the row's.
// What is read twice is read once up and once down, so that a cache has the last of it.
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

// use(load(i), i) for the columns i of a walk; kBatch of them are loaded before the first is used.
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

// A number of each channel of each thread, handed to the threads that join them.
template <int kCount>
struct Slots {
  float values[kCount * kThreads];

  __device__ float& own(int i) { return values[i * kThreads + static_cast<int>(threadIdx.x)]; }
};

// Calls join(place of its channel in Slots::values by row 0 of the block, channel) with a thread
// for each channel of the block; by the next row it lies `width` further.
template <int kCount, class Join>
__device__ void for_channels_of_block(const Split& split, Join join) {
  const int thread = static_cast<int>(threadIdx.x);
  const int value = thread / split.width, column = thread % split.width;
  const int of_row = static_cast<int>(blockIdx.x) * split.width + column;
  if (value < kCount && of_row < split.columns) {
    join(value * kThreads + column, of_row * kCount + value);
  }
}

// Joins what of(chunk) gives for the chunks, in blocks of [kTile, kTile] threads: the first row has
// the whole. `empty` is joined where a thread has no chunk.
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

// count: channels that a thread reads at once.
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
