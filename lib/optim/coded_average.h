// An average of a TensorOptimizer in 8 bits, or in floats where the tensor is small.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/optim/block_codes.h"
#include "lib/optim/tensor_optimizer.h"

namespace scaletrain::optim {

class CodedAverage {
 public:
  // `kind` is its name in the optimizer's state, and `place` its number among the averages of each
  // parameter. A tensor of fewer than `min_size` elements is not coded.
  CodedAverage(std::string kind, std::size_t place, bool has_signs, std::int64_t min_size,
               at::Device device);

  // Adds its zeros to what a parameter begins with.
  void add_states(const NamedParameter& parameter, std::vector<TensorState>& states) const;

  // In the parameter's shape, as a tensor of its own; what it has become is for store().
  at::Tensor load(const TensorStep& one) const;
  void store(const at::Tensor& values, const TensorStep& one) const;

 private:
  bool is_coded(const at::Tensor& tensor) const { return tensor.numel() >= min_size_; }

  std::string kind_;
  std::size_t place_;
  std::int64_t min_size_;
  BlockCodes codes_;
};

}  // namespace scaletrain::optim
