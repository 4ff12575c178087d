// The two inner loops of a resize. There is one version for every processor and one for AVX2; all
// are integer arithmetic and give the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image/resize_axis.h"

namespace scaletrain::data {

// A weight of 22 bits is kept as an upper and a lower part of 11, so that both can be multiplied as
// 16-bit numbers, two at a time.

// The weights of an axis laid out for rows of RGB pixels: four source pixels at a time.
struct RowWeights {
  static constexpr std::int64_t kPixels = 4;  // source pixels of a group

  // Factors of two vectors of eight 16-bit values. The first has red, green and blue of the first
  // and second pixel side by side, then two unused values; the second has the third and fourth
  // pixel.
  struct Group {
    std::int16_t upper[16];  // NOLINT(modernize-avoid-c-arrays): as registers have it
    std::int16_t lower[16];  // NOLINT(modernize-avoid-c-arrays)
  };
  std::vector<Group> groups;
  std::vector<std::int32_t> first;  // result pixel -> byte of its first source pixel
  std::int64_t per_pixel = 0;       // groups
  std::int64_t most_taps = 0;       // source pixels that make up one of the result
  std::int64_t reach = 0;           // bytes of a row that are read

  // `axis` is prepared; source pixels are counted from axis.needed().begin.
  void prepare(const ResizeAxis& axis);
};

// The weights of an axis laid out for sums of rows: two rows at a time.
struct ColumnWeights {
  struct Pair {
    std::int16_t upper[2];  // NOLINT(modernize-avoid-c-arrays): as registers have it
    std::int16_t lower[2];  // NOLINT(modernize-avoid-c-arrays)
  };
  std::vector<Pair> pairs;
  std::int64_t per_row = 0;  // pairs of a row of the result

  void prepare(const ResizeAxis& axis);  // `axis` is prepared
  const Pair* of_row(std::int64_t y) const { return pairs.data() + y * per_row; }
};

struct ResizeKernels {
  // Two rows of pixels; at most two bytes are written behind each result.
  void (*rows)(const RowWeights& weights, const std::uint8_t* in, const std::uint8_t* in2,
               std::uint8_t* out, std::uint8_t* out2);

  // The weighted sum of `count` rows, `stride` bytes apart from `in` on; `bytes` of the result. Up
  // to 31 bytes behind a row are read. An odd row has a weight of 0 beside its own.
  void (*columns)(const ColumnWeights::Pair* pairs, std::int64_t count, const std::uint8_t* in,
                  std::int64_t stride, std::uint8_t* out, std::int64_t bytes);
};

const ResizeKernels& plain_kernels();
const ResizeKernels& best_kernels();  // for this processor

}  // namespace scaletrain::data
