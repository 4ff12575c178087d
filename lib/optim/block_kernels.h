// Steps of optimizers whose averages lie in 8 bits, on a CPU: a block is decoded, changed and coded
// again (lib/optim/block_codes.h) while it is in the first-level cache.
#pragma once

#include <cstdint>

namespace scaletrain::optim {

// The numbers of a block that a parameter has: `count` of them, at most kCodeBlock.
struct BlockStep {
  std::int64_t count;
  float* parameter;
  const float* gradient;
};

// An average of them.
struct CodedBlock {
  std::uint8_t* codes;
  float* scale;
};

// p = keep * p - rate * m / (sqrt(correction * v) + eps) with m, the average with signs, and v,
// that of the squares, moved towards the gradient.
struct AdamWNumbers {
  float beta1, beta2, eps, keep, rate, correction;
};
// Only where core::has_avx2() (lib/core/cpu.h), as the next; by AVX-512 where the processor has it.
void adamw_block(const AdamWNumbers& numbers, const BlockStep& step, const CodedBlock& average,
                 const CodedBlock& squares);

// p = keep * p - rate * sign(beta1 * m + (1 - beta1) g), and m moved towards the gradient by beta2.
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
