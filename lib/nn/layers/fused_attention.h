// Attention on a CPU in fp32 by a kernel of our own (lib/nn/kernels/attention.h): ATen's calls a
// matrix product for each few queries, which costs more than it computes where heads are narrow.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// True if the kernel takes these: queries [batch, heads, tokens, head_dim]; keys and values of the
// same shape or with fewer heads.
bool fused_attention_takes(const at::Tensor& queries, const at::Tensor& keys,
                           const at::Tensor& values);

// softmax(queries keys^T / sqrt(head_dim)) values, [batch, tokens, heads, head_dim]; with `causal`
// a token sees itself and those before it.
at::Tensor fused_attention(const at::Tensor& queries, const at::Tensor& keys,
                           const at::Tensor& values, bool causal);

// Fused attention of packed `qkv` [batch, tokens, 3, heads, head_dim] (queries, keys, values); its
// gradient is one tensor.
at::Tensor fused_attention(const at::Tensor& qkv, bool causal);

}  // namespace scaletrain::nn
