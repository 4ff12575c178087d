// A running average of a TensorOptimizer in 8 bits, or in floats for small tensors.
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

// Calls `body` with each block of the parameter and the index of its first element, on ATen's
// threads. Only for tensors for which CodedAverage::has_blocks() is true.
void for_each_block(const TensorStep& one,
                    const std::function<void(const BlockStep&, std::int64_t at)>& body);

// A running average in CPU memory, of a parameter that starts `front` elements after the start of a
// block.
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
  // `kind` is its name in the optimizer's state, `place` its index among the averages of each
  // parameter. Tensors of fewer than `min_size` elements are not quantized.
  CodedAverage(std::string kind, std::size_t place, bool has_signs, std::int64_t min_size,
               at::Device device);

  // Adds its initial zeros to the state of a parameter.
  void add_states(const NamedParameter& parameter, std::vector<TensorState>& states) const;

  // Returns the average as a new tensor in the parameter's shape; store() writes the new value.
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
