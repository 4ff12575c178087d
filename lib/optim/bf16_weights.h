// Pure bf16 weights without an fp32 copy: keeps updates that are smaller than a weight's last bit.
//
// Every optimizer treats them as fp32 weights: weights and gradients are widened for the update
// only, the result is rounded, and the fp32 copies are released. Optimizer state is fp32.
// Stochastic rounding chooses the upper of the two bf16 neighbours with the probability that keeps
// the expected value (Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section
// 3; torchao's bf16_stochastic_round). Kahan summation keeps the rounding error in a second bf16
// tensor and adds it to the next update (Zamirai et al., Revisiting BFloat16 Training, 2020,
// algorithm 1; optimi's kahan_sum): together 16 bits of fraction.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/optim/optimizer.h"

namespace scaletrain::optim {

enum class Rounding { kStochastic, kKahan };

// Makes the recipe's optimizer for `parameters`: bf16 ones as above, others unchanged. Stochastic
// rounding draws by (seed, step, parameter), the same on all ranks. State has "kahan/PARAMETER" in
// addition to the optimizer's own.
std::unique_ptr<Optimizer> make_bf16_optimizer(const recipe::Optimizer& config,
                                               const std::vector<NamedParameter>& parameters,
                                               Rounding rounding, std::uint64_t seed);

// Rounds `values`, fp32 and finite, stochastically to bf16 values, in place. A bf16 value does not
// change.
void round_stochastically(const at::Tensor& values, at::Generator generator);

}  // namespace scaletrain::optim
