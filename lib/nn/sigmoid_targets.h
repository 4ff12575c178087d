// What losses with a sigmoid for each class compare the classes with, and what is made of the
// classes' losses.
#pragma once

#include <ATen/core/Tensor.h>

#include "lib/recipe/sections/loss.h"

namespace scaletrain::nn {

// Targets, [batch] classes or [batch, classes] shares, as shares for `logits`, smoothed as timm's
// one-hot targets are: (1 - smoothing) x share + smoothing / classes.
at::Tensor shares_for(const at::Tensor& logits, const at::Tensor& targets, double smoothing);

// /loss/class_weights on `device`, undefined where there are none.
at::Tensor class_weights_of(const recipe::Loss& loss, at::Device device);

// Of `losses` [batch, classes], each times its class's weight where `weights` are defined: the sum
// over the samples of the classes' mean or, with `sum_classes`, sum.
at::Tensor sum_over_samples(const at::Tensor& losses, const at::Tensor& weights, bool sum_classes);

}  // namespace scaletrain::nn
