#include "lib/nn/kernels/rms_norm.h"

#include <cmath>

#include "lib/core/vectors.h"

namespace scaletrain::nn::kernels {

using vectors::Floats;
using vectors::kLanes;
using vectors::load;
using vectors::store;
using vectors::sum;

__attribute__((target("avx2,fma"))) void rms_norm(RmsNormShape shape, const float* x,
                                                  const float* weight, float eps, float* y,
                                                  float* scales) {
  const auto [rows, columns] = shape;
  for (std::int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    Floats squares{};
    std::int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) squares += load(x + i) * load(x + i);
    float total = sum(squares);
    for (; i < columns; ++i) total += x[i] * x[i];
    const float scale = 1.0F / std::sqrt(total / static_cast<float>(columns) + eps);
    scales[row] = scale;
    for (i = 0; i + kLanes <= columns; i += kLanes) {
      store(y + i, load(x + i) * scale * load(weight + i));
    }
    for (; i < columns; ++i) y[i] = x[i] * scale * weight[i];
  }
}

// With z = weight * gradient and s the row's scale: s z - x s^3 mean(x z).
__attribute__((target("avx2,fma"))) void rms_norm_backward(RmsNormShape shape, const float* x,
                                                           const float* weight, const float* scales,
                                                           const float* gradient, float* of_x,
                                                           float* of_weight) {
  const auto [rows, columns] = shape;
  for (std::int64_t row = 0; row < rows; ++row) {
    Floats products{};
    std::int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      products += load(x + i) * load(weight + i) * load(gradient + i);
    }
    float total = sum(products);
    for (; i < columns; ++i) total += x[i] * weight[i] * gradient[i];
    const float scale = scales[row];
    const float back = scale * scale * scale * total / static_cast<float>(columns);
    for (i = 0; i + kLanes <= columns; i += kLanes) {
      const Floats own = load(x + i), upper = load(gradient + i);
      store(of_x + i, load(weight + i) * upper * scale - own * back);
      store(of_weight + i, load(of_weight + i) + own * upper * scale);
    }
    for (; i < columns; ++i) {
      of_x[i] = weight[i] * gradient[i] * scale - x[i] * back;
      of_weight[i] += x[i] * gradient[i] * scale;
    }
    x += columns;
    gradient += columns;
    of_x += columns;
  }
}

}  // namespace scaletrain::nn::kernels
