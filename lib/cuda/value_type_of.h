// Conversion of a tensor's dtype to ValueType.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/cuda/value_type.h"

namespace scaletrain::cuda {

// For fp32, fp16 or bf16 only: callers of the operators have checked the dtype.
inline ValueType value_type_of(const at::Tensor& values) {
  switch (values.scalar_type()) {
    case at::kHalf:
      return ValueType::kHalf;
    case at::kBFloat16:
      return ValueType::kBFloat16;
    default:
      return ValueType::kFloat;
  }
}

}  // namespace scaletrain::cuda
