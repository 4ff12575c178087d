// Scaled dot-product attention (Vaswani et al., Attention Is All You Need, 2017, section 3.2).
#pragma once

#include <cstdint>

#include "lib/nn/layers/dropout.h"
#include "lib/units/unit.h"

namespace scaletrain::nn {

// Without tensors of its own: the projections around it are a model's, under the names that it has
// for them.
class Attention : public Drawing {
 public:
  struct Options {
    std::int64_t head_dim = 0;
    bool causal = false;  // a token sees itself and those before it
    double dropout = 0;   // share of the attention weights dropped in training
  };
  explicit Attention(const Options& options) : options_(options) {}

  // [batch, tokens, 3 * heads * head_dim], queries, keys and values side by side
  //   -> [batch, tokens, heads * head_dim]; the number of heads follows from the width.
  at::Tensor forward(const at::Tensor& qkv, const units::Context& context = {}) const;

  // Queries [batch, heads, tokens, head_dim], keys and values alike or with fewer heads, each of
  // which serves as many neighbouring queries (Ainslie et al., GQA, 2023)
  //   -> [batch, tokens, heads * head_dim]. Where the context has a cache, what it holds of this
  // layer stands before them; where it says what each token sees, that is it; where it says how the
  // tokens of several ranks attend, that does it.
  at::Tensor forward(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                     const units::Context& context = {}) const;

 private:
  // True if the output depends only on queries, keys and values.
  bool is_plain(const units::Context& context) const;

  Options options_;
};

}  // namespace scaletrain::nn
