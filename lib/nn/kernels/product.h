// Products of small fp32 matrices, for the kernels of this folder.
#pragma once

#include <cstdint>

namespace scaletrain::nn::kernels {

// A matrix whose element (row, k) is data[row * row_stride + k * k_stride].
struct Left {
  const float* data;
  std::int64_t row_stride, k_stride;
};

// out [rows, columns] = a [rows, depth] b [depth, columns], or adds the product to out; `columns`
// and the row strides of b and out are multiples of eight. Both functions give the same bits; they
// need core::has_avx2() and core::has_avx512(). The latter is two to three times as fast.
void avx2_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, Left a,
                  const float* b, std::int64_t b_stride, float* out, std::int64_t out_stride,
                  bool add);
void avx512_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, Left a,
                    const float* b, std::int64_t b_stride, float* out, std::int64_t out_stride,
                    bool add);

}  // namespace scaletrain::nn::kernels
