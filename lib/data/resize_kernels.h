// The two inner loops of a resize. There is one version for every processor and one for AVX2; all
// are integer arithmetic and give the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/resize_axis.h"

namespace scaletrain::data {

// The weights of an axis laid out for rows of RGB pixels: four pixels at a time, a weight of 22
// bits in an upper and a lower part of 11, so that they can be multiplied as 16-bit numbers.
struct RowWeights {
  static constexpr std::int64_t kPixels = 4;  // of a group

  // What two groups of eight 32-bit sums (red, green, blue, nothing; twice) are multiplied with.
  struct Group {
    std::int16_t upper[16];  // NOLINT(modernize-avoid-c-arrays): as a register has it
    std::int16_t lower[16];  // NOLINT(modernize-avoid-c-arrays)
  };
  std::vector<Group> groups;
  std::vector<std::int32_t> first;  // of each pixel of the result: byte of its first source pixel
  std::int64_t per_pixel = 0;       // groups
  std::int64_t reach = 0;           // bytes of a row that are read

  // `axis` is prepared; source pixels are counted from axis.needed().begin.
  void prepare(const ResizeAxis& axis);
};

struct ResizeKernels {
  // Two rows of pixels; at most one byte is written behind each result.
  void (*rows)(const RowWeights& weights, const std::uint8_t* in, const std::uint8_t* in2,
               std::uint8_t* out, std::uint8_t* out2);

  // The weighted sum of `taps.count` rows, `stride` bytes apart from `in` on; `bytes` of the
  // result. Up to 31 bytes behind a row are read.
  void (*columns)(const ResizeAxis::Taps& taps, const std::uint8_t* in, std::int64_t stride,
                  std::uint8_t* out, std::int64_t bytes);
};

const ResizeKernels& plain_kernels();
const ResizeKernels& best_kernels();  // for this processor

}  // namespace scaletrain::data
