// Losses by name, as sums, so that the mean over the global batch can be taken once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "lib/recipe/sections/loss.h"
#include "lib/units/layer_cut.h"

namespace scaletrain::nn {

class Loss {
 public:
  virtual ~Loss() = default;
  // Returns the sum over the batch's samples, a 0-dim fp32 tensor (fp64 for fp64 logits). logits:
  // [batch, classes]. targets: [batch] int64, or [batch, classes] shares; shares of a softmax loss
  // sum to 1, those of a sigmoid loss are independent.
  virtual at::Tensor sum(const at::Tensor& logits, const at::Tensor& targets) const = 0;

  // Returns the divisor of a mean loss for int64 targets: their number, or the sum of their class
  // weights (PyTorch's cross_entropy `weight=`). For soft targets it is always their number.
  virtual double weight_of(std::span<const std::int64_t> targets) const {
    return static_cast<double>(targets.size());
  }
  // True if weight_of() is the number of targets.
  virtual bool weighs_alike() const { return true; }

  // Makes the loss vocabulary-parallel: sum() then gets the logits of some of the classes and
  // returns the same on all ranks. Throws core::RecipeError for a loss that needs all of them.
  virtual void cut_by(units::ClassCut cut);
};

// Makes the loss for tensors on `device`.
std::unique_ptr<Loss> make_loss(const recipe::Loss& loss, at::Device device);

// Makes the loss without label smoothing and class weights: evaluation reports this one, which
// recipes with other smoothing or weights share.
std::unique_ptr<Loss> make_plain_loss(recipe::Loss loss, at::Device device);

}  // namespace scaletrain::nn
