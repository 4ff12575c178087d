// The gradients' global norm, and clipping by it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace scaletrain::optim {

// L2 norm over all `gradients` as one vector, a 0-dim tensor.
at::Tensor grad_norm(const std::vector<at::Tensor>& gradients);

// Multiplies by max_norm / (norm + 1e-6) where that is below 1, as torch.nn.utils.clip_grad_norm_.
void clip_grad_norm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm,
                    double max_norm);

}  // namespace scaletrain::optim
