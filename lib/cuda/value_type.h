// Dtypes that kernels read and write; all kernels compute in fp32.
#pragma once

namespace scaletrain::cuda {

enum class ValueType { kFloat, kHalf, kBFloat16 };

}  // namespace scaletrain::cuda
