// Numbers in 8 bits (Dettmers et al., 8-bit Optimizers via Block-wise Quantization, 2022, sections
// 2 and 3): a number over the largest size in its block, as the nearest of 256 values that lie
// denser towards 0.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace scaletrain::optim {

// Numbers of a block, counted from the logical tensor's start.
inline constexpr std::int64_t kCodeBlock = 256;

// The values that a code stands for, 256 floats that rise: 0, 1 and, for each e from 0 to 6, the
// middles of 2^e equal parts of [0.1, 1], and their negatives, or of 2^(e + 1) parts without signs,
// times 10^(e - 6) (section 3 and appendix, dynamic quantization).
std::vector<float> code_values(bool has_signs);

// Coded numbers: `codes` uint8 in the numbers' shape, `scales` a float for each block.
struct Coded {
  at::Tensor codes, scales;
};

class BlockCodes {
 public:
  BlockCodes(bool has_signs, at::Device device);

  // Zeros of the shape of `like`, which begins at element `begin` of its logical tensor.
  Coded zeros(const at::Tensor& like, std::int64_t begin) const;

  // As floats, in the shape of the codes.
  at::Tensor decode(const Coded& coded, std::int64_t begin) const;

  // Writes `values` into `coded`. Without signs, a value above 0 does not become 0.
  void encode(const at::Tensor& values, const Coded& coded, std::int64_t begin) const;

 private:
  bool has_signs_;
  at::Tensor values_;
  at::Tensor bounds_;  // between the values
};

}  // namespace scaletrain::optim
