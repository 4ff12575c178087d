// Stochastic depth: whole branches of a residual net left out, sample by sample.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace scaletrain::nn {

// Huang et al., Deep Networks with Stochastic Depth, 2016, as timm's DropPath: in training the
// branch [batch, ...] of a sample becomes zero with probability `rate`, and is divided by 1 - rate
// where it stays. Draws from the process's generator, as dropout does.
at::Tensor drop_path(const at::Tensor& branch, double rate, bool training);

// The rate of each of `blocks` blocks: evenly from 0 to `rate`, which is the last one's.
std::vector<double> drop_path_rates(double rate, std::int64_t blocks);

}  // namespace scaletrain::nn
