// Gradient clipping, and the check that gradients are finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "lib/recipe/sections/clip.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::optim {

// Multiplies the gradients by max_norm / (norm + 1e-6) if that is below 1, as
// torch.nn.utils.clip_grad_norm_. Only queues work: `norm` is not read on a device.
void clip_grad_norm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
                    double max_norm);
// Overload for a limit on the device, a 0-dim tensor; infinite: nothing is clipped.
void clip_grad_norm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
                    const at::Tensor& max_norm);

// Limits each element to -limit..limit, as torch.nn.utils.clip_grad_value_.
void clip_grad_value(const std::vector<at::Tensor>& gradients, double limit);

// Adaptive gradient clipping: limits the gradient norm of each unit (one index of the first
// dimension, or a complete one-dimensional tensor) to `factor` times the norm of its weights, at
// least 1e-3 (Brock et al., High-Performance Large-Scale Image Recognition Without Normalization,
// 2021, equation 3; timm's adaptive_clip_grad). Does not clip the head.
void clip_grad_adaptive(const std::vector<units::NamedParameter>& parameters, double factor);

// Local shards of sharded parameters, as ranges of their elements, in the same order on all ranks
// of the sharding group.
struct ShardedParameters {
  std::vector<units::NamedParameter> parts = {};
  std::function<void(const at::Tensor&)> sum = {};  // all-reduces a tensor over these ranks
};
// Adaptive clipping of sharded parameters: sums the squares of each unit over the ranks in one
// all-reduce.
void clip_grad_adaptive(const ShardedParameters& shards, double factor);

// Clips as in the recipe. `norm` is that of all gradients of the model as one vector; `shards`
// replace `parameters` if there are any.
void clip(const recipe::Clip& limits, const std::vector<units::NamedParameter>& parameters,
          const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
          const ShardedParameters& shards = {});

// Returns 1 if any of these 0-dim tensors is not finite, otherwise 0: a 0-dim float on their
// device, for Optimizer::step(). Needs at least one tensor.
at::Tensor not_finite(const std::vector<at::Tensor>& values);

}  // namespace scaletrain::optim
