// Activations on a CPU, in fp32 and bf16, in one pass over memory.
#pragma once

#include <cstdint>

#include "lib/nn/kernels/bf16.h"

namespace scaletrain::nn::kernels {

// 0 in place of what is below it: values[i] of itself. Only where core::has_avx2(), as all of
// these.
void relu(std::int64_t count, float* values);
// The gradient of x[i] where y[i], which is relu of it, has gradient[i].
void relu_backward(std::int64_t count, const float* y, const float* gradient, float* result);

// x times the normal distribution's share below x (Hendrycks and Gimpel, Gaussian Error Linear
// Units, 2016), within 2e-7 |x|: y[i] of x[i].
void gelu(std::int64_t count, const float* x, float* y);
// The gradient of x[i] where y[i] has gradient[i].
void gelu_backward(std::int64_t count, const float* x, const float* gradient, float* result);

// Its approximation by tanh, ibid. section 2.
void tanh_gelu(std::int64_t count, const float* x, float* y);
void tanh_gelu_backward(std::int64_t count, const float* x, const float* gradient, float* result);

// silu(gate[i]) * up[i] (Shazeer, GLU Variants Improve Transformer, 2020, section 2).
void swiglu(std::int64_t count, const float* gate, const float* up, float* y);
// The gradients of both where y[i] has gradient[i].
void swiglu_backward(std::int64_t count, const float* gate, const float* up, const float* gradient,
                     float* of_gate, float* of_up);

// bf16 variants of the above, computed in fp32, but for gelu, of which ATen has a faster one. They
// need core::has_avx512(), as all of these do.
void tanh_gelu(std::int64_t count, const Bf16* x, Bf16* y);
void tanh_gelu_backward(std::int64_t count, const Bf16* x, const Bf16* gradient, Bf16* result);
void swiglu(std::int64_t count, const Bf16* gate, const Bf16* up, Bf16* y);
void swiglu_backward(std::int64_t count, const Bf16* gate, const Bf16* up, const Bf16* gradient,
                     Bf16* of_gate, Bf16* of_up);

}  // namespace scaletrain::nn::kernels
