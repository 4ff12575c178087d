// Activations on a CPU, in fp32 and bf16, in one pass over memory.
#pragma once

#include <cstdint>

#include "lib/nn/kernels/bf16.h"

namespace scaletrain::nn::kernels {

// values[i] = max(values[i], 0). Like all functions without bf16 here it needs core::has_avx2().
void relu(std::int64_t count, float* values);
// Gradient of x[i], given y[i] = relu(x[i]) and the gradient of y[i].
void relu_backward(std::int64_t count, const float* y, const float* gradient, float* result);

// y[i] = x[i] times the normal cumulative distribution at x[i] (Hendrycks and Gimpel, Gaussian
// Error Linear Units, 2016), within 2e-7 |x|.
void gelu(std::int64_t count, const float* x, float* y);
// Gradient of x[i], given the gradient of y[i].
void gelu_backward(std::int64_t count, const float* x, const float* gradient, float* result);

// GELU's tanh approximation, ibid. section 2.
void tanh_gelu(std::int64_t count, const float* x, float* y);
void tanh_gelu_backward(std::int64_t count, const float* x, const float* gradient, float* result);

// silu(gate[i]) * up[i] (Shazeer, GLU Variants Improve Transformer, 2020, section 2).
void swiglu(std::int64_t count, const float* gate, const float* up, float* y);
// Gradients of gate and up, given the gradient of y.
void swiglu_backward(std::int64_t count, const float* gate, const float* up, const float* gradient,
                     float* of_gate, float* of_up);

// bf16 variants, computed in fp32, except gelu, for which ATen's is faster. They need
// core::has_avx512().
void tanh_gelu(std::int64_t count, const Bf16* x, Bf16* y);
void tanh_gelu_backward(std::int64_t count, const Bf16* x, const Bf16* gradient, Bf16* result);
void swiglu(std::int64_t count, const Bf16* gate, const Bf16* up, Bf16* y);
void swiglu_backward(std::int64_t count, const Bf16* gate, const Bf16* up, const Bf16* gradient,
                     Bf16* of_gate, Bf16* of_up);

}  // namespace scaletrain::nn::kernels
