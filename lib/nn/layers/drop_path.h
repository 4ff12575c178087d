// Stochastic depth: drops residual branches sample by sample.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace scaletrain::nn {

// As timm's DropPath (Huang et al., Deep Networks with Stochastic Depth, 2016): in training the
// branch [batch, ...] of a sample becomes zero with probability `rate`, and is divided by 1 - rate
// otherwise. Draws from the process's generator, as dropout does.
at::Tensor drop_path(const at::Tensor& branch, double rate, bool training);

// Returns the rate of each of `blocks` blocks, increasing linearly from 0 to `rate`.
std::vector<double> drop_path_rates(double rate, std::int64_t blocks);

}  // namespace scaletrain::nn
