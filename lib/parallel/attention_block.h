// Softmax attention of some queries on some keys at a time: what blocks of keys give one after the
// other is merged into attention on all of them (Milakov and Gimelshein, Online normalizer
// calculation for softmax, 2018; backward as in Dao et al., FlashAttention, 2022, appendix B.4).
//
// Computed in fp32, or in fp64 for such tensors; a few queries at a time, so that no scores of
// a whole block are in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace scaletrain::parallel {

// Which of a block's pairs of query and key count.
struct Visible {
  // Query number i sees keys 0 to i alone; otherwise all.
  bool causal = false;
  // Those of the same document alone, [batch, queries] and [batch, keys]; undefined: all.
  at::Tensor query_documents = {}, key_documents = {};
};

// Keys and values [batch, key heads, keys, head_dim], each head of which serves as many
// neighbouring heads of queries.
struct KeyBlock {
  at::Tensor keys, values;
};

// What queries have of the keys so far.
struct Mixed {
  at::Tensor output;  // [batch, heads, queries, head_dim] fp32
  at::Tensor sums;    // [batch, heads, queries] fp32: logarithms of the sums of exponentials

  // Of no key yet.
  static Mixed none(const at::Tensor& queries);
  // The same memory, of `count` queries from `first` on.
  Mixed rows(std::int64_t first, std::int64_t count) const;
};

// Adds the keys of `block` to what `queries` [batch, heads, queries, head_dim] have. Of the first
// block each query sees a key.
void attend(const at::Tensor& queries, const KeyBlock& block, const Visible& visible,
            const Mixed& mixed);

// What backward starts from: gradients and `mixed` of all blocks.
struct MixedGradient {
  at::Tensor output;  // of it, [batch, heads, queries, head_dim] fp32
  at::Tensor along;   // [batch, heads, queries] fp32: sums of its products with the output
  at::Tensor sums;    // Mixed's

  MixedGradient rows(std::int64_t first, std::int64_t count) const;
};

// Adds what a block gives to the gradients of `queries` and of its keys and values, all of them
// fp32 (fp64).
void attend_backward(const at::Tensor& queries, const KeyBlock& block, const Visible& visible,
                     const MixedGradient& gradient, const at::Tensor& of_queries,
                     const KeyBlock& of_block);

}  // namespace scaletrain::parallel
