#include "lib/nn/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/core/cpu.h"
#include "lib/core/vectors.h"
#include "lib/nn/kernels/product.h"

namespace scaletrain::nn::kernels {

using vectors::all;
using vectors::exp;
using vectors::Floats;
using vectors::kLanes;
using vectors::load;
using vectors::maximum;
using vectors::store;
using vectors::sum;

namespace {

constexpr std::int64_t kBlock = 48;  // queries at a time

std::int64_t whole_vectors(std::int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// [head_dim, tokens] of rows [tokens, head_dim]; columns up to `width` are zeros.
void transpose(const AttentionShape& shape, ConstRows rows, std::int64_t width, float* out) {
  for (std::int64_t d = 0; d < shape.head_dim; ++d) {
    float* const row = out + d * width;
    for (std::int64_t token = 0; token < shape.tokens; ++token) {
      row[token] = rows.data[token * rows.stride + d];
    }
    std::fill(row + shape.tokens, row + width, 0.0F);
  }
}

// Extent of a block of queries: `seen` keys are computed, `width` of them in memory.
struct Block {
  std::int64_t begin, rows, seen, width;
};

Block block_at(const AttentionShape& shape, std::int64_t begin) {
  const std::int64_t rows = std::min(kBlock, shape.tokens - begin);
  const std::int64_t seen = shape.causal ? begin + rows : shape.tokens;
  return {.begin = begin, .rows = rows, .seen = seen, .width = whole_vectors(seen)};
}

// How many keys the query sees.
std::int64_t seen_by(const AttentionShape& shape, std::int64_t query) {
  return shape.causal ? query + 1 : shape.tokens;
}

// row[i] = e^(scale * row[i] - shift) of the keys that are seen, and 0 of the others; their sum.
[[gnu::always_inline]] inline float exponentials(float* row, std::int64_t seen, std::int64_t width,
                                                 float scale, float shift) {
  Floats sums{};
  for (std::int64_t i = 0; i < width; i += kLanes) {
    Floats value = exp(load(row + i) * scale - shift);
    if (i + kLanes > seen) {
      for (std::int64_t lane = std::max<std::int64_t>(seen - i, 0); lane < kLanes; ++lane) {
        value[lane] = 0;
      }
    }
    sums += value;
    store(row + i, value);
  }
  return sum(sums);
}

[[gnu::always_inline]] inline float largest(const float* row, std::int64_t seen) {
  Floats most = all(-std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + kLanes <= seen; i += kLanes) {
    const Floats own = load(row + i);
    most = own < most ? most : own;  // NaN stays
  }
  float result = maximum(most);
  for (; i < seen; ++i) result = row[i] < result ? result : row[i];
  return result;
}

[[gnu::always_inline]] inline float dot(const float* a, const float* b, std::int64_t count) {
  Floats sums{};
  for (std::int64_t i = 0; i < count; i += kLanes) sums += load(a + i) * load(b + i);
  return sum(sums);
}

Left rows_from(ConstRows rows, std::int64_t begin) {
  return {rows.data + begin * rows.stride, rows.stride, 1};
}

}  // namespace

std::int64_t attention_scratch(const AttentionShape& shape) {
  return 2 * whole_vectors(shape.tokens) * (shape.head_dim + kBlock);
}

__attribute__((target("avx2,fma"))) void attention(const AttentionShape& shape, ConstRows queries,
                                                   ConstRows keys, ConstRows values, Rows output,
                                                   float* sums, float* scratch) {
  const auto multiply = core::has_avx512() ? avx512_product : avx2_product;
  const std::int64_t width = whole_vectors(shape.tokens);
  float* const columns = scratch;  // the keys, transposed
  float* const scores = columns + shape.head_dim * width;
  transpose(shape, keys, width, columns);
  for (std::int64_t begin = 0; begin < shape.tokens; begin += kBlock) {
    const Block block = block_at(shape, begin);
    multiply(block.rows, block.width, shape.head_dim, rows_from(queries, begin), columns, width,
             scores, width, /*add=*/false);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      float* const row = scores + i * width;
      const std::int64_t seen = seen_by(shape, begin + i);
      const float shift = largest(row, seen) * shape.scale;
      const float total = exponentials(row, seen, block.width, shape.scale, shift);
      sums[begin + i] = shift + std::log(total);
      const float share = 1.0F / total;
      for (std::int64_t k = 0; k < block.width; k += kLanes) store(row + k, load(row + k) * share);
    }
    multiply(block.rows, shape.head_dim, block.seen, {scores, width, 1}, values.data, values.stride,
             output.data + begin * output.stride, output.stride, /*add=*/false);
  }
}

// With P the softmax, of a block of queries: dV += P^T dO; dS = P (dO V^T - dO.O) scale; dQ = dS K;
// dK += dS^T Q.
__attribute__((target("avx2,fma"))) void attention_backward(const AttentionShape& shape,
                                                            ConstRows queries, ConstRows keys,
                                                            ConstRows values, ConstRows output,
                                                            const float* sums, ConstRows gradient,
                                                            const AttentionGradients& result,
                                                            float* scratch) {
  const auto multiply = core::has_avx512() ? avx512_product : avx2_product;
  const std::int64_t width = whole_vectors(shape.tokens);
  float* const key_columns = scratch;
  float* const value_columns = key_columns + shape.head_dim * width;
  float* const shares = value_columns + shape.head_dim * width;
  float* const changes = shares + kBlock * width;
  transpose(shape, keys, width, key_columns);
  transpose(shape, values, width, value_columns);
  for (std::int64_t begin = 0; begin < shape.tokens; begin += kBlock) {
    const Block block = block_at(shape, begin);
    const float* const upper = gradient.data + begin * gradient.stride;
    multiply(block.rows, block.width, shape.head_dim, rows_from(queries, begin), key_columns, width,
             shares, width, /*add=*/false);
    multiply(block.rows, block.width, shape.head_dim, rows_from(gradient, begin), value_columns,
             width, changes, width, /*add=*/false);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      float* const row = shares + i * width;
      float* const change = changes + i * width;
      exponentials(row, seen_by(shape, begin + i), block.width, shape.scale, sums[begin + i]);
      const float mean = dot(upper + i * gradient.stride, output.data + (begin + i) * output.stride,
                             shape.head_dim);
      for (std::int64_t k = 0; k < block.width; k += kLanes) {
        store(change + k, load(row + k) * (load(change + k) - mean) * shape.scale);
      }
    }
    multiply(block.seen, shape.head_dim, block.rows, {shares, 1, width}, upper, gradient.stride,
             result.values.data, result.values.stride, /*add=*/true);
    multiply(block.rows, shape.head_dim, block.seen, {changes, width, 1}, keys.data, keys.stride,
             result.queries.data + begin * result.queries.stride, result.queries.stride,
             /*add=*/false);
    multiply(block.seen, shape.head_dim, block.rows, {changes, 1, width},
             queries.data + begin * queries.stride, queries.stride, result.keys.data,
             result.keys.stride, /*add=*/true);
  }
}

}  // namespace scaletrain::nn::kernels
