// Losses by name, as sums, so that the mean over the global batch can be taken once.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "lib/recipe/recipe.h"

namespace scaletrain::nn {

class Loss {
 public:
  virtual ~Loss() = default;
  // Sum over the batch's targets, a 0-dim fp32 tensor (fp64 for fp64 logits). logits [batch,
  // classes], targets [batch] int64, or [batch, classes] shares that add up to 1.
  virtual at::Tensor sum(const at::Tensor& logits, const at::Tensor& targets) const = 0;
};

std::unique_ptr<Loss> make_loss(const recipe::Loss& loss);

// The same without label smoothing: what evaluation reports, which recipes with another smoothing
// share.
std::unique_ptr<Loss> make_plain_loss(recipe::Loss loss);

}  // namespace scaletrain::nn
