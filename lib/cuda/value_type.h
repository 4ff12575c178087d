// The types of numbers that kernels read and write; they all compute in fp32.
#pragma once

namespace scaletrain::cuda {

enum class ValueType { kFloat, kHalf, kBFloat16 };

}  // namespace scaletrain::cuda
