#include "lib/nn/kernels/activations.h"

#include <numbers>

#include "lib/core/vectors.h"

namespace scaletrain::nn::kernels {

using vectors::exp;
using vectors::Floats;
using vectors::map;

namespace {

[[gnu::always_inline]] inline Floats sigmoid(Floats x) { return 1.0F / (1.0F + exp(-x)); }

// The normal distribution: the share below x, and the density times x.
struct Normal {
  Floats share, slope;
};

// erf by Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26, within 1.5e-7.
[[gnu::always_inline]] inline Normal normal(Floats x) {
  constexpr float kRoot2 = std::numbers::sqrt2_v<float>;
  constexpr float kDensity = 0.398942280F;  // 1 / sqrt(2 pi)
  const Floats at = (x < 0.0F ? -x : x) / kRoot2;
  const Floats power = exp(-at * at);
  const Floats t = 1.0F / (at * 0.3275911F + 1.0F);
  Floats sum = t * 1.061405429F - 1.453152027F;
  sum = sum * t + 1.421413741F;
  sum = sum * t - 0.284496736F;
  sum = sum * t + 0.254829592F;
  const Floats beyond = sum * t * power * 0.5F;  // the share above |x|
  return {.share = x < 0.0F ? beyond : 1.0F - beyond, .slope = x * power * kDensity};
}

// NaN and -0 stay, as ATen has it.
struct Relu {
  [[gnu::always_inline]] Floats operator()(Floats x) const { return x < 0.0F ? Floats{} : x; }
};

struct ReluSlope {
  [[gnu::always_inline]] Floats operator()(Floats y, Floats gradient) const {
    return y <= 0.0F ? Floats{} : gradient;
  }
};

struct Gelu {
  [[gnu::always_inline]] Floats operator()(Floats x) const { return x * normal(x).share; }
};

struct GeluSlope {
  [[gnu::always_inline]] Floats operator()(Floats x, Floats gradient) const {
    const Normal at = normal(x);
    return gradient * (at.share + at.slope);
  }
};

// 0.5 (1 + tanh(u)) = sigmoid(2 u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float kTwice = 1.595769122F;  // 2 sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

struct TanhGelu {
  [[gnu::always_inline]] Floats operator()(Floats x) const {
    return x * sigmoid(x * kTwice * (x * x * kCubic + 1.0F));
  }
};

struct TanhGeluSlope {
  [[gnu::always_inline]] Floats operator()(Floats x, Floats gradient) const {
    const Floats square = x * x * kCubic;
    const Floats share = sigmoid(x * kTwice * (square + 1.0F));
    const Floats rise = kTwice * (square * 3.0F + 1.0F);
    return gradient * (share + x * share * (1.0F - share) * rise);
  }
};

struct Swiglu {
  [[gnu::always_inline]] Floats operator()(Floats gate, Floats up) const {
    return gate * sigmoid(gate) * up;
  }
};

struct SwigluOfGate {
  [[gnu::always_inline]] Floats operator()(Floats gate, Floats up, Floats gradient) const {
    const Floats share = sigmoid(gate);
    return gradient * up * share * (1.0F + gate * (1.0F - share));
  }
};

}  // namespace

__attribute__((target("avx2,fma"))) void relu(std::int64_t count, float* values) {
  map(count, values, Relu{}, static_cast<const float*>(values));
}

__attribute__((target("avx2,fma"))) void relu_backward(std::int64_t count, const float* y,
                                                       const float* gradient, float* result) {
  map(count, result, ReluSlope{}, y, gradient);
}

__attribute__((target("avx2,fma"))) void gelu(std::int64_t count, const float* x, float* y) {
  map(count, y, Gelu{}, x);
}

__attribute__((target("avx2,fma"))) void gelu_backward(std::int64_t count, const float* x,
                                                       const float* gradient, float* result) {
  map(count, result, GeluSlope{}, x, gradient);
}

__attribute__((target("avx2,fma"))) void tanh_gelu(std::int64_t count, const float* x, float* y) {
  map(count, y, TanhGelu{}, x);
}

__attribute__((target("avx2,fma"))) void tanh_gelu_backward(std::int64_t count, const float* x,
                                                            const float* gradient, float* result) {
  map(count, result, TanhGeluSlope{}, x, gradient);
}

__attribute__((target("avx2,fma"))) void swiglu(std::int64_t count, const float* gate,
                                                const float* up, float* y) {
  map(count, y, Swiglu{}, gate, up);
}

__attribute__((target("avx2,fma"))) void swiglu_backward(std::int64_t count, const float* gate,
                                                         const float* up, const float* gradient,
                                                         float* of_gate, float* of_up) {
  map(count, of_gate, SwigluOfGate{}, gate, up, gradient);
  map(count, of_up, Swiglu{}, gate, gradient);
}

}  // namespace scaletrain::nn::kernels
