// Blockwise softmax attention: attention of some queries to one block of keys after the other is
// merged into attention to all keys (Milakov and Gimelshein, Online normalizer calculation for
// softmax, 2018; backward as in Dao et al., FlashAttention, 2022, appendix B.4).
//
// Computes in fp32, or in fp64 for fp64 tensors, and for a few queries at a time, so that the
// scores of a whole block are never in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace scaletrain::parallel {

// Mask of a block: the pairs of a query and a key that take part in attention.
struct Visible {
  // True: query i sees keys 0 to i only. False: it sees all keys.
  bool causal = false;
  // Document numbers, [batch, queries] and [batch, keys]: a query sees keys of its own document
  // only; undefined: of all documents.
  at::Tensor query_documents = {}, key_documents = {};
};

// Keys and values, [batch, key heads, keys, head_dim]. Each key head serves an equal number of
// adjacent query heads (grouped-query attention).
struct KeyBlock {
  at::Tensor keys, values;
};

// Attention of the queries to all blocks of keys merged so far.
struct Mixed {
  at::Tensor output;  // [batch, heads, queries, head_dim] fp32
  at::Tensor sums;    // [batch, heads, queries] fp32: log of the sum of exponentials

  // Initial value: no key merged yet.
  static Mixed none(const at::Tensor& queries);
  // Views of `count` queries from `first` on; they share this one's memory.
  Mixed rows(std::int64_t first, std::int64_t count) const;
};

// Merges the keys of `block` into `mixed` of `queries`, [batch, heads, queries, head_dim]. Each
// query must see at least one key of the first block that is merged.
void attend(const at::Tensor& queries, const KeyBlock& block, const Visible& visible,
            const Mixed& mixed);

// Inputs of the backward pass, computed from the attention to all blocks.
struct MixedGradient {
  at::Tensor output;  // gradient of the output, [batch, heads, queries, head_dim] fp32
  at::Tensor along;   // [batch, heads, queries] fp32: dot product of that gradient and output
  at::Tensor sums;    // Mixed::sums

  MixedGradient rows(std::int64_t first, std::int64_t count) const;
};

// Adds one block's contribution to the gradients of the queries, `of_queries`, and of its keys and
// values, `of_block`; all of them are fp32 (or fp64).
void attend_backward(const at::Tensor& queries, const KeyBlock& block, const Visible& visible,
                     const MixedGradient& gradient, const at::Tensor& of_queries,
                     const KeyBlock& of_block);

}  // namespace scaletrain::parallel
