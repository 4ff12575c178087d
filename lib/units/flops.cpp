#include "lib/units/flops.h"

#include <algorithm>

namespace scaletrain::units {
namespace {

// Unmasked pairs of a query and a key.
double visible_pairs(const AttentionSize& size) {
  if (!size.causal) return size.queries * size.keys;
  const double short_side = std::min(size.queries, size.keys);
  return short_side * (short_side + 1) / 2 + (size.queries - short_side) * size.keys;
}

Flops attention_flops(const AttentionSize& size, double numbers_of_pair) {
  const double all = 2 * size.heads * numbers_of_pair;
  const double pairs = size.queries * size.keys;
  return {.attention = all * pairs, .masked = all * (pairs - visible_pairs(size))};
}

}  // namespace

Flops AttentionSize::forward() const { return attention_flops(*this, head_dim + value_dim); }

// Scores and the gradients of queries and keys sum over head_dim; those of the weights and of the
// values over value_dim.
Flops AttentionSize::backward() const {
  return attention_flops(*this, 3 * head_dim + 2 * value_dim);
}

}  // namespace scaletrain::units
