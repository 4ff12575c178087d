// Targets of losses with a sigmoid for each class, and the sums of their losses; for multi-label
// classification.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/recipe/sections/loss.h"

namespace scaletrain::nn {

// Converts targets, [batch] classes or [batch, classes] shares, to shares for `logits`, smoothed as
// timm's one-hot targets: (1 - smoothing) x share + smoothing / classes.
at::Tensor shares_for(const at::Tensor& logits, const at::Tensor& targets, double smoothing);

// Returns /loss/class_weights on `device`; undefined if there are none.
at::Tensor class_weights_of(const recipe::Loss& loss, at::Device device);

// Sums `losses` [batch, classes] over the samples, each times its class weight if `weights` are
// defined. Over the classes it takes the mean or, with `sum_classes`, the sum.
at::Tensor sum_over_samples(const at::Tensor& losses, const at::Tensor& weights, bool sum_classes);

}  // namespace scaletrain::nn
