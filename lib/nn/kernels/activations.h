// Activations on a CPU, in fp32, in one pass over memory.
#pragma once

#include <cstdint>

namespace scaletrain::nn::kernels {

// x times the normal distribution's share below x (Hendrycks and Gimpel, Gaussian Error Linear
// Units, 2016), within 2e-7 |x|: y[i] of x[i]. Only where core::has_avx2(), as all of these.
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

}  // namespace scaletrain::nn::kernels
