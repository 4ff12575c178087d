// Rotary position embedding (RoPE): rotates queries and keys by angles that grow with the position,
// so that their products depend on the distance of two tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace scaletrain::nn {

// Scaling of angles for sequences longer than in the original training.
struct RotaryScaling {
  enum class Kind {
    kNone,
    kLinear,  // all of them by `factor` (Chen et al., Extending Context Window of Large Language
              // Models via Positional Interpolation, 2023)
    kLlama3   // slow ones by `factor`, fast ones not, those between partly (The Llama 3 Herd of
              // Models, 2024; as in the published code of Llama 3.1)
  };
  Kind kind = Kind::kNone;
  double factor = 1;
  // For kLlama3: wavelengths above original / low are slow, below original / high are fast.
  double low = 1, high = 4;
  std::int64_t original = 8192;
};

// Has no parameters and is shared by all blocks. Su et al., RoFormer, 2021, section 3.2, with the
// halves of a head as pairs, as Hugging Face stores Llama.
class Rotary {
 public:
  struct Options {
    std::int64_t head_dim = 0;  // even
    std::int64_t positions = 0;
    double theta = 10000;
    RotaryScaling scaling = {};
  };
  explicit Rotary(const Options& options);

  // [batch, heads, tokens, head_dim] -> the same shape and dtype; the first token is at position
  // `first`, and first + tokens is at most `positions`.
  at::Tensor forward(const at::Tensor& input, std::int64_t first = 0);
  // Overload for tokens at positions `places` [tokens] int64.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& places);

 private:
  void move_to(at::Device device);

  at::Tensor cosines_, sines_;  // [positions, head_dim / 2] fp32, on the device of the last input
};

}  // namespace scaletrain::nn
