// Block-wise 8-bit quantization of optimizer state (Dettmers et al., 8-bit Optimizers via
// Block-wise Quantization, 2022, sections 2 and 3): each number is divided by the largest magnitude
// in its block and mapped to the nearest of 256 values, which are denser near 0.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace scaletrain::optim {

// Elements of a block, counted from the start of the logical tensor.
inline constexpr std::int64_t kCodeBlock = 256;

// Returns the 256 code values in ascending order: 0, 1, and for each e from 0 to 6 the midpoints of
// 2^e equal parts of [0.1, 1], with both signs, or of 2^(e + 1) parts if unsigned, times 10^(e - 6)
// (section 3 and appendix, dynamic quantization).
std::vector<float> code_values(bool has_signs);

// Quantized numbers: `codes` is uint8 in their shape, `scales` has a float for each block.
struct Coded {
  at::Tensor codes, scales;
};

class BlockCodes {
 public:
  BlockCodes(bool has_signs, at::Device device);

  // Returns zeros in the shape of `like`, which starts at element `begin` of its logical tensor.
  Coded zeros(const at::Tensor& like, std::int64_t begin) const;

  // Returns the values as floats, in the shape of the codes.
  at::Tensor decode(const Coded& coded, std::int64_t begin) const;

  // Writes `values` into `coded`. Without signs, a positive value does not become 0.
  void encode(const at::Tensor& values, const Coded& coded, std::int64_t begin) const;

 private:
  bool has_signs_;
  at::Tensor values_;
  at::Tensor bounds_;  // boundaries between the values
};

}  // namespace scaletrain::optim
