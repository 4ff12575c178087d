// RMSNorm on a CPU, in fp32.
#pragma once

#include <cstdint>

namespace scaletrain::nn::kernels {

// y = x / sqrt(mean(x^2) + eps) * weight for each of `rows` rows of `columns` numbers; `scales`
// receives each row's 1 / sqrt(...) (Zhang and Sennrich, Root Mean Square Layer Normalization,
// 2019). Needs core::has_avx2().
struct RmsNormShape {
  std::int64_t rows = 0, columns = 0;
};
void rms_norm(RmsNormShape shape, const float* x, const float* weight, float eps, float* y,
              float* scales);

// Gradient of x, given `gradient` of y; adds the gradient of the weight, over these rows, to
// `of_weight`.
void rms_norm_backward(RmsNormShape shape, const float* x, const float* weight, const float* scales,
                       const float* gradient, float* of_x, float* of_weight);

}  // namespace scaletrain::nn::kernels
