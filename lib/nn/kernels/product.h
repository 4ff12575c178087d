// Products of small matrices in fp32, for the kernels of this folder.
#pragma once

#include <cstdint>

namespace scaletrain::nn::kernels {

// A matrix whose element (row, k) is data[row * row_stride + k * k_stride].
struct Left {
  const float* data;
  std::int64_t row_stride, k_stride;
};

// out [rows, columns] = a [rows, depth] b [depth, columns], or added to it; `columns` is a multiple
// of eight, and so is what b and out have in memory behind each row's begin. To the same bits,
// where core::has_avx2(), core::has_avx512(); the latter is two to three times as fast.
void avx2_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, Left a,
                  const float* b, std::int64_t b_stride, float* out, std::int64_t out_stride,
                  bool add);
void avx512_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, Left a,
                    const float* b, std::int64_t b_stride, float* out, std::int64_t out_stride,
                    bool add);

}  // namespace scaletrain::nn::kernels
