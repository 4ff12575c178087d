// bf16 storage type; the kernels of this folder compute in fp32.
#pragma once

#include <cstdint>

namespace scaletrain::nn::kernels {

// The upper half of a float.
struct Bf16 {
  std::uint16_t bits;
};

}  // namespace scaletrain::nn::kernels
