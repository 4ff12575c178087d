// Fused fp32 attention on a CPU (lib/nn/kernels/attention.h): ATen's version makes a matrix product
// for every few queries, whose overhead dominates with small heads.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// True if the kernel supports these: queries [batch, heads, tokens, head_dim]; keys and values of
// the same shape or with fewer heads.
bool fused_attention_takes(const at::Tensor& queries, const at::Tensor& keys,
                           const at::Tensor& values);

// softmax(queries keys^T / sqrt(head_dim)) values, [batch, tokens, heads, head_dim]; with `causal`
// a token attends to itself and earlier tokens.
at::Tensor fused_attention(const at::Tensor& queries, const at::Tensor& keys,
                           const at::Tensor& values, bool causal);

// Fused attention of packed `qkv` [batch, tokens, 3, heads, head_dim] (queries, keys, values); its
// gradient is one tensor.
at::Tensor fused_attention(const at::Tensor& qkv, bool causal);

}  // namespace scaletrain::nn
