#include "lib/nn/kernels/activations.h"
#include "lib/nn/kernels/bf16_vectors.h"

// The formulas of activations.cpp, sixteen numbers at a time.
namespace scaletrain::nn::kernels {
namespace {

#define SCALETRAIN_INLINE [[gnu::always_inline, SCALETRAIN_AVX512]] inline

SCALETRAIN_INLINE __m512 all(float value) { return _mm512_set1_ps(value); }

// a * b + c
SCALETRAIN_INLINE __m512 fma(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
SCALETRAIN_INLINE __m512 fma(__m512 a, __m512 b, float c) { return fma(a, b, all(c)); }

// vectors::exp (lib/core/vectors.h).
SCALETRAIN_INLINE __m512 exp(__m512 x) {
  constexpr float kLowest = -87.0F, kHighest = 88.0F;
  constexpr float kLog2E = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  // Min and max return their second operand if one is NaN, so a NaN stays.
  x = _mm512_min_ps(all(kHighest), _mm512_max_ps(all(kLowest), x));
  const __m512 whole = _mm512_roundscale_ps(_mm512_mul_ps(x, all(kLog2E)), 0);
  __m512 rest = _mm512_fnmadd_ps(whole, all(kLn2High), x);
  rest = _mm512_fnmadd_ps(whole, all(kLn2Low), rest);
  __m512 sum = fma(rest, all(1.9875691500e-4F), 1.3981999507e-3F);
  sum = fma(sum, rest, 8.3334519073e-3F);
  sum = fma(sum, rest, 4.1665795894e-2F);
  sum = fma(sum, rest, 1.6666665459e-1F);
  sum = fma(sum, rest, 5.0000001201e-1F);
  sum = _mm512_add_ps(fma(sum, _mm512_mul_ps(rest, rest), rest), all(1));
  return _mm512_scalef_ps(sum, whole);
}

SCALETRAIN_INLINE __m512 sigmoid(__m512 x) {
  const __m512 power = exp(_mm512_sub_ps(_mm512_setzero_ps(), x));
  return _mm512_div_ps(all(1), _mm512_add_ps(all(1), power));
}

constexpr float kTwiceRoot = 1.595769122F;  // 2 sqrt(2 / pi)
constexpr float kCube = 0.044715F;

struct WideTanhGelu {
  SCALETRAIN_INLINE static __m512 of(__m512 x) {
    const __m512 inner = fma(_mm512_mul_ps(x, x), all(kCube), 1);
    return _mm512_mul_ps(x, sigmoid(_mm512_mul_ps(_mm512_mul_ps(x, all(kTwiceRoot)), inner)));
  }
};

struct WideTanhGeluSlope {
  SCALETRAIN_INLINE static __m512 of(__m512 x, __m512 gradient) {
    const __m512 square = _mm512_mul_ps(_mm512_mul_ps(x, x), all(kCube));
    const __m512 inner = _mm512_add_ps(square, all(1));
    const __m512 share = sigmoid(_mm512_mul_ps(_mm512_mul_ps(x, all(kTwiceRoot)), inner));
    const __m512 rise = _mm512_mul_ps(all(kTwiceRoot), fma(square, all(3), 1));
    const __m512 turn = _mm512_mul_ps(share, _mm512_sub_ps(all(1), share));
    return _mm512_mul_ps(gradient, fma(_mm512_mul_ps(x, turn), rise, share));
  }
};

struct WideSwiglu {
  SCALETRAIN_INLINE static __m512 of(__m512 gate, __m512 up) {
    return _mm512_mul_ps(_mm512_mul_ps(gate, sigmoid(gate)), up);
  }
};

struct WideSwigluOfGate {
  SCALETRAIN_INLINE static __m512 of(__m512 gate, __m512 up, __m512 gradient) {
    const __m512 share = sigmoid(gate);
    const __m512 slope = fma(gate, _mm512_sub_ps(all(1), share), 1);
    return _mm512_mul_ps(_mm512_mul_ps(gradient, up), _mm512_mul_ps(share, slope));
  }
};

// y[i] = Body::of(x[i]...)
template <typename Body, typename... Inputs>
SCALETRAIN_INLINE void map_wide(std::int64_t count, Bf16* y, const Inputs*... x) {
  for (std::int64_t i = 0; i < count; i += kWide) {
    const __mmask16 lanes = first_lanes(count - i);
    store_narrow(lanes, y + i, Body::of(load_wide(lanes, x + i)...));
  }
}

}  // namespace

[[SCALETRAIN_AVX512]] void tanh_gelu(std::int64_t count, const Bf16* x, Bf16* y) {
  map_wide<WideTanhGelu>(count, y, x);
}

[[SCALETRAIN_AVX512]] void tanh_gelu_backward(std::int64_t count, const Bf16* x,
                                              const Bf16* gradient, Bf16* result) {
  map_wide<WideTanhGeluSlope>(count, result, x, gradient);
}

[[SCALETRAIN_AVX512]] void swiglu(std::int64_t count, const Bf16* gate, const Bf16* up, Bf16* y) {
  map_wide<WideSwiglu>(count, y, gate, up);
}

[[SCALETRAIN_AVX512]] void swiglu_backward(std::int64_t count, const Bf16* gate, const Bf16* up,
                                           const Bf16* gradient, Bf16* of_gate, Bf16* of_up) {
  map_wide<WideSwigluOfGate>(count, of_gate, gate, up, gradient);
  map_wide<WideSwiglu>(count, of_up, gate, gradient);
}

}  // namespace scaletrain::nn::kernels
