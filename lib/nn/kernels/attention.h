// FlashAttention-style fp32 attention on a CPU without a matrix of all scores: processes a few
// queries of a head at a time, and backward recomputes the scores (Dao et al., FlashAttention,
// 2022).
#pragma once

#include <cstdint>

namespace scaletrain::nn::kernels {

// A matrix [tokens, head_dim] whose rows are `stride` numbers apart.
struct ConstRows {
  const float* data;
  std::int64_t stride;
};
struct Rows {
  float* data;
  std::int64_t stride;
};

struct AttentionShape {
  std::int64_t tokens = 0;
  std::int64_t head_dim = 0;  // a multiple of kHeadDimStep
  bool causal = false;        // token i attends to tokens 0..i only
  float scale = 1;            // multiplies the scores
};
constexpr std::int64_t kHeadDimStep = 8;

// Returns the floats of scratch memory for a head.
std::int64_t attention_scratch(const AttentionShape& shape);

// Computes one head: `output` = softmax(scale * queries keys^T) values; `sums` receives each
// token's log of the softmax denominator. Needs core::has_avx2().
void attention(const AttentionShape& shape, ConstRows queries, ConstRows keys, ConstRows values,
               Rows output, float* sums, float* scratch);

// Backward of the above, for the output's `gradient`: sets the gradient of the queries and adds to
// those of the keys and values, which several query heads may share.
struct AttentionGradients {
  Rows queries, keys, values;
};
void attention_backward(const AttentionShape& shape, ConstRows queries, ConstRows keys,
                        ConstRows values, ConstRows output, const float* sums, ConstRows gradient,
                        const AttentionGradients& result, float* scratch);

}  // namespace scaletrain::nn::kernels
