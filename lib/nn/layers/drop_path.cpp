#include "lib/nn/layers/drop_path.h"

#include <ATen/ATen.h>

namespace scaletrain::nn {

at::Tensor drop_path(const at::Tensor& branch, double rate, bool training) {
  if (!training || rate == 0) return branch;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(branch.dim()), 1);
  shape[0] = branch.size(0);
  const at::Tensor kept = at::empty(shape, branch.options()).bernoulli_(1 - rate).div_(1 - rate);
  return branch * kept;
}

std::vector<double> drop_path_rates(double rate, std::int64_t blocks) {
  std::vector<double> result(static_cast<std::size_t>(blocks), 0.0);
  for (std::int64_t i = 1; i < blocks; ++i) {
    result[static_cast<std::size_t>(i)] =
        rate * static_cast<double>(i) / static_cast<double>(blocks - 1);
  }
  return result;
}

}  // namespace scaletrain::nn
