#include "lib/nn/kernels/product.h"

#include <immintrin.h>

#include <array>
#include <cstddef>

#include "lib/core/vectors.h"

namespace scaletrain::nn::kernels {
namespace {

using vectors::all;
using vectors::Floats;
using vectors::kLanes;
using vectors::load;
using vectors::store;

constexpr std::int64_t kTileRows = 6, kTileVectors = 2;  // fits AVX2's registers

// kRows rows and kVectors * kLanes columns of the product, which begin at `out`.
template <std::size_t kRows, std::size_t kVectors>
[[gnu::always_inline]] inline void add_tile(std::int64_t depth, Left a, const float* b,
                                            std::int64_t b_stride, float* out,
                                            std::int64_t out_stride, bool add) {
  std::array<std::array<Floats, kVectors>, kRows> sums{};
  for (std::int64_t k = 0; k < depth; ++k) {
    std::array<Floats, kVectors> right;
    for (std::size_t v = 0; v < kVectors; ++v) right[v] = load(b + k * b_stride + v * kLanes);
    for (std::size_t row = 0; row < kRows; ++row) {
      const Floats left =
          all(a.data[static_cast<std::int64_t>(row) * a.row_stride + k * a.k_stride]);
      for (std::size_t v = 0; v < kVectors; ++v) sums[row][v] += left * right[v];
    }
  }
  for (std::size_t row = 0; row < kRows; ++row) {
    float* const to = out + static_cast<std::int64_t>(row) * out_stride;
    for (std::size_t v = 0; v < kVectors; ++v) {
      Floats total = sums[row][v];
      if (add) total += load(to + v * kLanes);
      store(to + v * kLanes, total);
    }
  }
}

template <std::size_t kVectors>
[[gnu::always_inline]] inline void add_columns(std::int64_t rows, std::int64_t depth, Left a,
                                               const float* b, std::int64_t b_stride, float* out,
                                               std::int64_t out_stride, bool add) {
  std::int64_t row = 0;
  const auto from = [&](std::int64_t first) __attribute__((always_inline)) {
    return Left{a.data + first * a.row_stride, a.row_stride, a.k_stride};
  };
  for (; row + kTileRows <= rows; row += kTileRows) {
    add_tile<kTileRows, kVectors>(depth, from(row), b, b_stride, out + row * out_stride, out_stride,
                                  add);
  }
  if (row + 4 <= rows) {
    add_tile<4, kVectors>(depth, from(row), b, b_stride, out + row * out_stride, out_stride, add);
    row += 4;
  }
  for (; row < rows; ++row) {
    add_tile<1, kVectors>(depth, from(row), b, b_stride, out + row * out_stride, out_stride, add);
  }
}

using Wide = float __attribute__((vector_size(64)));
constexpr std::int64_t kWideLanes = 16;

#define SCALETRAIN_WIDE gnu::always_inline, gnu::target("avx512f")

[[SCALETRAIN_WIDE]] inline Wide load_wide(const float* from) { return _mm512_loadu_ps(from); }

// add_tile() with registers of 16.
template <std::size_t kRows, std::size_t kVectors>
[[SCALETRAIN_WIDE]] inline void add_wide_tile(std::int64_t depth, Left a, const float* b,
                                              std::int64_t b_stride, float* out,
                                              std::int64_t out_stride, bool add) {
  std::array<std::array<Wide, kVectors>, kRows> sums{};
  for (std::int64_t k = 0; k < depth; ++k) {
    std::array<Wide, kVectors> right;
    for (std::size_t v = 0; v < kVectors; ++v)
      right[v] = load_wide(b + k * b_stride + v * kWideLanes);
    for (std::size_t row = 0; row < kRows; ++row) {
      const Wide left =
          _mm512_set1_ps(a.data[static_cast<std::int64_t>(row) * a.row_stride + k * a.k_stride]);
      for (std::size_t v = 0; v < kVectors; ++v) sums[row][v] += left * right[v];
    }
  }
  for (std::size_t row = 0; row < kRows; ++row) {
    float* const to = out + static_cast<std::int64_t>(row) * out_stride;
    for (std::size_t v = 0; v < kVectors; ++v) {
      Wide total = sums[row][v];
      if (add) total += load_wide(to + v * kWideLanes);
      _mm512_storeu_ps(to + v * kWideLanes, total);
    }
  }
}

template <std::size_t kVectors>
[[SCALETRAIN_WIDE]] inline void add_wide_columns(std::int64_t rows, std::int64_t depth, Left a,
                                                 const float* b, std::int64_t b_stride, float* out,
                                                 std::int64_t out_stride, bool add) {
  constexpr std::int64_t kMostRows = 8;
  std::int64_t row = 0;
  for (; row + kMostRows <= rows; row += kMostRows) {
    const Left from{a.data + row * a.row_stride, a.row_stride, a.k_stride};
    add_wide_tile<kMostRows, kVectors>(depth, from, b, b_stride, out + row * out_stride, out_stride,
                                       add);
  }
  for (; row < rows; ++row) {
    const Left from{a.data + row * a.row_stride, a.row_stride, a.k_stride};
    add_wide_tile<1, kVectors>(depth, from, b, b_stride, out + row * out_stride, out_stride, add);
  }
}

}  // namespace

__attribute__((target("avx2,fma"))) void avx2_product(std::int64_t rows, std::int64_t columns,
                                                      std::int64_t depth, Left a, const float* b,
                                                      std::int64_t b_stride, float* out,
                                                      std::int64_t out_stride, bool add) {
  constexpr std::int64_t kTileColumns = kTileVectors * kLanes;
  std::int64_t column = 0;
  for (; column + kTileColumns <= columns; column += kTileColumns) {
    add_columns<kTileVectors>(rows, depth, a, b + column, b_stride, out + column, out_stride, add);
  }
  if (column < columns) {
    add_columns<1>(rows, depth, a, b + column, b_stride, out + column, out_stride, add);
  }
}

__attribute__((target("avx2,fma,avx512f"))) void avx512_product(
    std::int64_t rows, std::int64_t columns, std::int64_t depth, Left a, const float* b,
    std::int64_t b_stride, float* out, std::int64_t out_stride, bool add) {
  std::int64_t column = 0;
  for (; column + 2 * kWideLanes <= columns; column += 2 * kWideLanes) {
    add_wide_columns<2>(rows, depth, a, b + column, b_stride, out + column, out_stride, add);
  }
  if (column + kWideLanes <= columns) {
    add_wide_columns<1>(rows, depth, a, b + column, b_stride, out + column, out_stride, add);
    column += kWideLanes;
  }
  if (column < columns) {
    add_columns<1>(rows, depth, a, b + column, b_stride, out + column, out_stride, add);
  }
}

}  // namespace scaletrain::nn::kernels
