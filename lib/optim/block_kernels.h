// CPU kernels of optimizers with 8-bit state: each block is decoded, updated and encoded again
// (lib/optim/block_codes.h) while it is in the first-level cache.
#pragma once

#include <cstdint>

namespace scaletrain::optim {

// Elements of a parameter in one block: `count` of them, at most kCodeBlock.
struct BlockStep {
  std::int64_t count;
  float* parameter;
  const float* gradient;
};

// Quantized running average of a block.
struct CodedBlock {
  std::uint8_t* codes;
  float* scale;
};

// p = keep * p - rate * m / (sqrt(correction * v) + eps), after updating the running averages m (of
// gradients, signed) and v (of their squares).
struct AdamWNumbers {
  float beta1, beta2, eps, keep, rate, correction;
};
// Needs core::has_avx2() (lib/core/cpu.h), like lion_block(); uses AVX-512 if the processor has it.
void adamw_block(const AdamWNumbers& numbers, const BlockStep& step, const CodedBlock& average,
                 const CodedBlock& squares);

// p = keep * p - rate * sign(beta1 * m + (1 - beta1) g), then moves m towards the gradient by
// beta2.
struct LionNumbers {
  float beta1, beta2, keep, rate;
};
void lion_block(const LionNumbers& numbers, const BlockStep& step, const CodedBlock& average);

// AVX2 and AVX-512 kernels, bitwise equal: need core::has_avx2() or core::has_avx512().
void avx2_adamw_block(const AdamWNumbers& numbers, const BlockStep& step, const CodedBlock& average,
                      const CodedBlock& squares);
void avx512_adamw_block(const AdamWNumbers& numbers, const BlockStep& step,
                        const CodedBlock& average, const CodedBlock& squares);
void avx2_lion_block(const LionNumbers& numbers, const BlockStep& step, const CodedBlock& average);
void avx512_lion_block(const LionNumbers& numbers, const BlockStep& step,
                       const CodedBlock& average);

}  // namespace scaletrain::optim
