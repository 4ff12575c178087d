// Attention on a CPU, in fp32, without a matrix of all scores: for each head, a few queries at a
// time (Dao and others, FlashAttention, 2022, whose backward computes the scores once more).
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
  bool causal = false;        // token i sees the tokens up to i alone
  float scale = 1;            // multiplies the scores
};
constexpr std::int64_t kHeadDimStep = 8;

// Numbers of scratch memory that a head takes.
std::int64_t attention_scratch(const AttentionShape& shape);

// One head: `output` = softmax(scale * queries keys^T) values, and `sums` of each token the
// logarithm of what its softmax divides by. Only where core::has_avx2().
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
