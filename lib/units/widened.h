// Accumulation dtype: fp32, or fp64 if the values are fp64.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace scaletrain::units {

inline at::ScalarType wide_type(const at::Tensor& values) {
  return c10::promoteTypes(values.scalar_type(), at::kFloat);
}

inline at::Tensor widened(const at::Tensor& values) { return values.to(wide_type(values)); }

}  // namespace scaletrain::units
