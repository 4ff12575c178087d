// Activations; on a CPU in fp32 with scaletrain's kernels (lib/nn/kernels/activations.h).
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// Elementwise, of any shape: torch.nn.functional.gelu, and the same with approximate="tanh".
at::Tensor gelu(const at::Tensor& input);
at::Tensor tanh_gelu(const at::Tensor& input);

// silu(gate) * up, of two tensors of one shape.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace scaletrain::nn
