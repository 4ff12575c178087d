// Linear layers whose three products, forward and backward, take 8-bit floats: e4m3 for inputs and
// weights, e5m2 for gradients (Micikevicius et al., FP8 Formats for Deep Learning, 2022, sections 3
// and 4). Operands are scaled first so that their largest magnitude is the format's, by one
// factor a tensor or by one for each row that is summed over: torchao's Float8Linear with dynamic
// scaling, "tensorwise" and "rowwise".
//
// e4m3 has 3 bits of fraction: a value is rounded by at most 2^-4 of itself, e5m2 by 2^-3; far
// below the largest magnitude the step is 2^-9 / 448 and 2^-16 / 57,344 of that.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::precision {

enum class Scaling { kTensorwise, kRowwise };

struct Quantised {
  at::Tensor values;  // [rows, columns] of the format
  at::Tensor scales;  // fp32, what the values are multiplied with: 0-dim, or [rows, 1]
};

// `matrix` [rows, columns] in at::kFloat8_e4m3fn or at::kFloat8_e5m2. Non-finite values stay
// non-finite.
Quantised quantise(const at::Tensor& matrix, at::ScalarType format, Scaling scaling);

struct Float8 {
  Scaling scaling = Scaling::kTensorwise;
  at::ScalarType result = at::kBFloat16;  // dtype of inputs and outputs; on a GPU bf16
  // Simulates the roundings and fp32 sums without the hardware's 8-bit product.
  bool simulated = false;
};

// As units::LinearProduct. Without `simulated` on a GPU of compute capability 8.9 alone, and with
// `in` and `out` multiples of 16.
at::Tensor float8_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         const Float8& how);

}  // namespace scaletrain::precision
