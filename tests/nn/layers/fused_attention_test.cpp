#include "lib/nn/layers/fused_attention.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/core/cpu.h"
#include "lib/nn/kernels/takes.h"

namespace scaletrain::nn {
namespace {

// The formula in doubles: [batch, tokens, heads, head_dim].
at::Tensor by_formula(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                      bool causal) {
  const std::int64_t tokens = queries.size(2), served = queries.size(1) / keys.size(1);
  at::Tensor scores = at::matmul(queries, keys.repeat_interleave(served, 1).transpose(2, 3)) /
                      std::sqrt(static_cast<double>(queries.size(3)));
  if (causal) {
    scores = scores.masked_fill(at::ones({tokens, tokens}, at::kBool).triu(1), -INFINITY);
  }
  return at::matmul(scores.softmax(3), values.repeat_interleave(served, 1)).transpose(1, 2);
}

// Over the largest number that is expected, or one.
double share_of_error(const at::Tensor& value, const at::Tensor& expected) {
  const double largest = std::max(1.0, expected.abs().max().item<double>());
  return (value.to(at::kDouble) - expected).abs().max().item<double>() / largest;
}

struct HeadShape {
  std::int64_t tokens, heads, key_heads, head_dim;
};
// Below, at and above a block of queries and a vector; widths with and without a half tile.
const std::vector<HeadShape> kHeadShapes{{1, 2, 2, 8},   {5, 2, 1, 16}, {8, 3, 3, 24},
                                         {47, 1, 1, 32}, {48, 2, 2, 8}, {49, 4, 2, 40},
                                         {101, 2, 2, 64}};

}  // namespace

TEST_CASE("fused attention is the formula, in values and gradients, with heads that share keys") {
  if (!core::has_avx2()) return;
  torch::manual_seed(3);
  for (const bool causal : {false, true}) {
    for (const HeadShape& one : kHeadShapes) {
      CAPTURE(causal);
      CAPTURE(one.tokens);
      CAPTURE(one.head_dim);
      const auto part = [&](std::int64_t heads) {
        // As a model has them: heads side by side in memory.
        return (2 * at::randn({2, one.tokens, heads, one.head_dim})).transpose(1, 2);
      };
      std::vector<at::Tensor> ours{part(one.heads), part(one.key_heads), part(one.key_heads)},
          peers;
      for (at::Tensor& tensor : ours) {
        peers.push_back(tensor.to(at::kDouble).requires_grad_(true));
        tensor.requires_grad_(true);
      }
      REQUIRE(fused_attention_takes(ours[0], ours[1], ours[2]));
      const at::Tensor output = fused_attention(ours[0], ours[1], ours[2], causal);
      const at::Tensor expected = by_formula(peers[0], peers[1], peers[2], causal);
      CHECK(output.sizes() == expected.sizes());
      CHECK(share_of_error(output, expected) < 2e-6);
      const at::Tensor shares = at::randn(output.sizes());
      (output * shares).sum().backward();
      (expected * shares).sum().backward();
      for (std::size_t i = 0; i < ours.size(); ++i) {
        CAPTURE(i);
        CHECK(share_of_error(ours[i].grad(), peers[i].grad()) < 1e-5);
      }
    }
  }
}

TEST_CASE("fused attention in bf16 is the formula, rounded to it, and shares keys") {
  if (!core::has_avx512()) return;
  torch::manual_seed(5);
  for (const bool causal : {false, true}) {
    for (const HeadShape& one : kHeadShapes) {
      CAPTURE(causal);
      CAPTURE(one.tokens);
      CAPTURE(one.head_dim);
      std::vector<at::Tensor> ours, peers;
      for (const std::int64_t heads : {one.heads, one.key_heads, one.key_heads}) {
        const at::Tensor part = at::randn({2, one.tokens, heads, one.head_dim}).to(at::kBFloat16);
        ours.push_back(part.transpose(1, 2).requires_grad_(true));
        peers.push_back(ours.back().detach().to(at::kDouble).requires_grad_(true));
      }
      REQUIRE(fused_attention_takes(ours[0], ours[1], ours[2]));
      const at::Tensor output = fused_attention(ours[0], ours[1], ours[2], causal);
      const at::Tensor expected = by_formula(peers[0], peers[1], peers[2], causal);
      CHECK((output.scalar_type() == at::kBFloat16));
      CHECK(share_of_error(output, expected) < 1.0 / 256);
      const at::Tensor shares = at::randn(output.sizes()).to(at::kBFloat16);
      output.backward(shares);
      expected.backward(shares.to(at::kDouble));
      for (std::size_t i = 0; i < ours.size(); ++i) {
        CAPTURE(i);
        // The output that backward starts from is rounded too.
        CHECK(share_of_error(ours[i].grad(), peers[i].grad()) < 1.0 / 100);
      }
    }
  }
  const at::Tensor qkv = at::randn({2, 50, 3, 2, 16}).to(at::kBFloat16).requires_grad_(true);
  const auto parts = qkv.detach().permute({2, 0, 3, 1, 4}).unbind();
  const at::Tensor packed = fused_attention(qkv, /*causal=*/true);
  CHECK(at::equal(packed, fused_attention(parts[0], parts[1], parts[2], /*causal=*/true)));
  packed.sum().backward();
  CHECK(qkv.grad().isfinite().all().item<bool>());
}

TEST_CASE("fused attention of queries, keys and values in one tensor is that of three") {
  if (!core::has_avx2()) return;
  torch::manual_seed(4);
  const at::Tensor qkv = at::randn({2, 50, 3, 2, 16}).requires_grad_(true);
  const at::Tensor split = qkv.detach().clone().requires_grad_(true);
  const auto parts = split.permute({2, 0, 3, 1, 4}).unbind();
  const at::Tensor packed = fused_attention(qkv, /*causal=*/true);
  const at::Tensor three = fused_attention(parts[0], parts[1], parts[2], /*causal=*/true);
  CHECK(at::equal(packed, three));
  const at::Tensor shares = at::randn(packed.sizes());
  (packed * shares).sum().backward();
  (three * shares).sum().backward();
  CHECK(at::equal(qkv.grad(), split.grad()));
}

TEST_CASE("a score that is not finite is seen in the output") {
  if (!core::has_avx2()) return;
  for (const float value : {NAN, INFINITY}) {
    const at::Tensor part = at::ones({1, 1, 9, 8});
    const at::Tensor queries = part.clone();
    queries[0][0][4][2].fill_(value);
    const at::Tensor output = fused_attention(queries, part, part, /*causal=*/true);
    CHECK(output[0][4].isnan().all().item<bool>());
    CHECK(output[0][3].isfinite().all().item<bool>());
  }
}

TEST_CASE("the kernel takes fp32 of as many queries as keys, of widths that fill vectors") {
  const at::Tensor part = at::ones({1, 2, 4, 8});
  CHECK(fused_attention_takes(part, part, part) == core::has_avx2());
  CHECK_FALSE(fused_attention_takes(part, part, part.to(at::kDouble)));
  const at::Tensor half = part.to(at::kBFloat16);
  CHECK(fused_attention_takes(half, half, half) == core::has_avx512());
  CHECK_FALSE(fused_attention_takes(half, part, part));
  CHECK_FALSE(fused_attention_takes(part, part, half));
  CHECK_FALSE(fused_attention_takes(part.narrow(2, 0, 1), part, part));
  const at::Tensor odd = at::ones({1, 2, 4, 12});
  CHECK_FALSE(fused_attention_takes(odd, odd, odd));
  const at::Tensor across = at::ones({1, 2, 8, 8}).transpose(2, 3);
  CHECK_FALSE(fused_attention_takes(across, across, across));
  const at::Tensor many = at::empty({1, 1, 1025, 8});
  CHECK_FALSE(fused_attention_takes(many, many, many));
}

}  // namespace scaletrain::nn
