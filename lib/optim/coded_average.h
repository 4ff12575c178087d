// An average of a TensorOptimizer in 8 bits, or in floats where the tensor is small.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/optim/block_codes.h"
#include "lib/optim/block_kernels.h"
#include "lib/optim/tensor_optimizer.h"

namespace scaletrain::optim {

// Calls `body` with each block of the parameter's elements and the first one's number, on the
// threads of ATen. Of tensors that a CodedAverage has blocks of.
void for_each_block(const TensorStep& one,
                    const std::function<void(const BlockStep&, std::int64_t at)>& body);

// An average in the memory of a CPU, of a parameter that begins `front` elements behind a block.
struct CodedBlocks {
  std::uint8_t* codes;
  float* scales;
  std::int64_t front;

  // Returns the rest of the block that holds element `at` of the parameter, from that element on.
  CodedBlock from(std::int64_t at) const {
    return {.codes = codes + at, .scale = scales + (front + at) / kCodeBlock};
  }
};

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

  // True if a kernel can take the parameter block by block (lib/optim/block_kernels.h).
  bool has_blocks(const TensorStep& one) const;
  CodedBlocks blocks(const TensorStep& one) const;

 private:
  bool is_coded(const at::Tensor& tensor) const { return tensor.numel() >= min_size_; }

  std::string kind_;
  std::size_t place_;
  std::int64_t min_size_;
  BlockCodes codes_;
};

}  // namespace scaletrain::optim
