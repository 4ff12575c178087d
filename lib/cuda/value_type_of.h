// The type of a tensor's values, in the words of the kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/cuda/value_type.h"

namespace scaletrain::cuda {

// fp32, fp16 or bf16: what calls the operators has looked at the type.
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
