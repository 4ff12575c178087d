// fp8 linear layers: the three matrix products of forward and backward take 8-bit floats, e4m3 for
// inputs and weights, e5m2 for gradients (Micikevicius et al., FP8 Formats for Deep Learning, 2022,
// sections 3 and 4). Dynamic scaling first maps the largest magnitude of an operand to the largest
// number of the format, with one factor per tensor or one per row: "tensorwise" and "rowwise" of
// torchao's Float8Linear.
//
// Rounding errors: e4m3 has 3 fraction bits and rounds by at most 2^-4 of a value, e5m2 by 2^-3.
// Values far below the largest magnitude have a step of 2^-9 / 448 (e4m3) or 2^-16 / 57,344 (e5m2)
// of it.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::precision {

enum class Scaling { kTensorwise, kRowwise };

struct Quantised {
  at::Tensor values;  // [rows, columns] in the fp8 format
  at::Tensor scales;  // fp32 factors that restore the values: 0-dim, or [rows, 1]
};

// Quantizes `matrix` [rows, columns] to at::kFloat8_e4m3fn or at::kFloat8_e5m2. Non-finite values
// stay non-finite.
Quantised quantise(const at::Tensor& matrix, at::ScalarType format, Scaling scaling);

struct Float8 {
  Scaling scaling = Scaling::kTensorwise;
  at::ScalarType result = at::kBFloat16;  // dtype of inputs and outputs; on a GPU bf16
  // Simulates the roundings and fp32 sums without the hardware's 8-bit product.
  bool simulated = false;
};

// Linear layer as units::LinearProduct. Unless `simulated`, it needs a GPU of compute capability
// 8.9 or higher, and `in` and `out` must be multiples of 16.
at::Tensor float8_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         const Float8& how);

}  // namespace scaletrain::precision
