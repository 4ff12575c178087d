// Clipping gradients by their norm, and whether they are finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace scaletrain::optim {

// Multiplies by max_norm / (norm + 1e-6) where that is below 1, as torch.nn.utils.clip_grad_norm_.
// Queues work only: `norm` is not looked at on a device.
void clip_grad_norm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
                    double max_norm);

// 1 where any of these 0-dim tensors is not finite, otherwise 0: a 0-dim float on their device, as
// Optimizer::step takes it. At least one.
at::Tensor not_finite(const std::vector<at::Tensor>& values);

}  // namespace scaletrain::optim
