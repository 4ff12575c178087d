// Scaled dot-product attention (Vaswani et al., Attention Is All You Need, 2017, section 3.2).
#pragma once

#include <cstdint>

#include "lib/nn/layers/dropout.h"
#include "lib/units/unit.h"

namespace scaletrain::nn {

// Has no parameters: the projections around it belong to the model, under its own names.
class Attention : public Drawing {
 public:
  struct Options {
    std::int64_t head_dim = 0;
    bool causal = false;  // a token attends to itself and earlier tokens
    double dropout = 0;   // share of the attention weights dropped in training
  };
  explicit Attention(const Options& options) : options_(options) {}

  // [batch, tokens, 3 * heads * head_dim], queries, keys and values side by side
  //   -> [batch, tokens, heads * head_dim]; the number of heads follows from the width.
  at::Tensor forward(const at::Tensor& qkv, const units::Context& context = {}) const;

  // Queries [batch, heads, tokens, head_dim]; keys and values of the same shape or with fewer
  // heads, each of which serves several neighbouring query heads (Ainslie et al., GQA, 2023) ->
  // [batch, tokens, heads * head_dim]. The context may have a KV cache, whose tokens come first; a
  // mask, which replaces causal attention; or attention over the tokens of several ranks (context
  // parallelism).
  at::Tensor forward(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                     const units::Context& context = {}) const;

 private:
  // True if the output depends only on queries, keys and values.
  bool is_plain(const units::Context& context) const;

  Options options_;
};

}  // namespace scaletrain::nn
