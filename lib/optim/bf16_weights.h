// Weights that are bf16 alone, without an fp32 copy: how an update that is smaller than their last
// bit is not lost.
//
// Every optimizer works on them as on fp32 weights: the weights and their gradients are widened for
// the update alone, which then is rounded, and the fp32 copies are given back until the next one.
// State is fp32. With stochastic rounding a weight goes to the upper of its two bf16 neighbours
// with the probability that makes the mean right (Gupta et al., Deep Learning with Limited
// Numerical Precision, 2015, section 3; torchao's bf16_stochastic_round). With Kahan summation a
// second bf16 tensor keeps what rounding took away, and gives it back to the next update (Zamirai
// et al., Revisiting BFloat16 Training, 2020, algorithm 1; optimi's kahan_sum): 16 bits of fraction
// in all.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/optim/optimizer.h"

namespace scaletrain::optim {

enum class Rounding { kStochastic, kKahan };

// The recipe's optimizer for `parameters`, those of bf16 as above, others as they are. Stochastic
// rounding draws by (seed, step, parameter), the same on all ranks. State has "kahan/PARAMETER"
// beside the optimizer's own.
std::unique_ptr<Optimizer> make_bf16_optimizer(const recipe::Optimizer& config,
                                               const std::vector<NamedParameter>& parameters,
                                               Rounding rounding, std::uint64_t seed);

// Rounds `values`, fp32 and finite, to bf16 values up or down, in place. A bf16 value stays as it
// is.
void round_stochastically(const at::Tensor& values, at::Generator generator);

}  // namespace scaletrain::optim
