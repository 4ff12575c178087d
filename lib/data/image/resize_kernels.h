// The two inner loops of a resize, in one version for every processor and one for AVX2. Both use
// integer arithmetic and give the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image/resize_axis.h"

namespace scaletrain::data {

// A 22-bit weight is split into an upper and a lower part of 11 bits, so that both can be
// multiplied as 16-bit numbers, two at a time.

// Weights of an axis in the layout for rows of RGB pixels: four source pixels at a time.
struct RowWeights {
  static constexpr std::int64_t kPixels = 4;  // source pixels of a group

  // Factors of two vectors of eight 16-bit values. The first has red, green and blue of the first
  // and second pixel in pairs, then two unused values; the second has the third and fourth pixel.
  struct Group {
    std::int16_t upper[16];  // NOLINT(modernize-avoid-c-arrays): as registers have it
    std::int16_t lower[16];  // NOLINT(modernize-avoid-c-arrays)
  };
  std::vector<Group> groups;
  std::vector<std::int32_t> first;  // by result pixel: byte of its first source pixel
  std::int64_t per_pixel = 0;       // groups for each result pixel
  std::int64_t most_taps = 0;       // maximum number of source pixels of a result pixel
  std::int64_t reach = 0;           // bytes that are read of a row

  // `axis` must be prepared; source pixels are counted from axis.needed().begin.
  void prepare(const ResizeAxis& axis);
};

// Weights of an axis in the layout for sums of rows: two rows at a time.
struct ColumnWeights {
  struct Pair {
    std::int16_t upper[2];  // NOLINT(modernize-avoid-c-arrays): as registers have it
    std::int16_t lower[2];  // NOLINT(modernize-avoid-c-arrays)
  };
  std::vector<Pair> pairs;
  std::int64_t per_row = 0;  // pairs for each result row

  void prepare(const ResizeAxis& axis);  // `axis` must be prepared
  const Pair* of_row(std::int64_t y) const { return pairs.data() + y * per_row; }
};

struct ResizeKernels {
  // Computes two rows of pixels; writes up to two bytes past each result.
  void (*rows)(const RowWeights& weights, const std::uint8_t* in, const std::uint8_t* in2,
               std::uint8_t* out, std::uint8_t* out2);

  // Computes the weighted sum of `count` rows, `stride` bytes apart, starting at `in`; the result
  // has `bytes` bytes. Reads up to 31 bytes past a row. The last of an odd number of rows is paired
  // with a weight of 0.
  void (*columns)(const ColumnWeights::Pair* pairs, std::int64_t count, const std::uint8_t* in,
                  std::int64_t stride, std::uint8_t* out, std::int64_t bytes);
};

const ResizeKernels& plain_kernels();
const ResizeKernels& best_kernels();  // kernels for this processor

}  // namespace scaletrain::data
