#include "lib/nn/layers/attention.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include <array>
#include <cmath>
#include <vector>

#include "lib/units/cache.h"

namespace scaletrain::nn {
namespace {

constexpr std::array<std::int64_t, 2> kHeadDims = {4, 8};  // a kernel takes the second (kernels/)

// Written out: softmax(q k' / sqrt(head_dim)) v for each head.
at::Tensor written_out(const at::Tensor& qkv, std::int64_t head_dim, bool causal) {
  const std::int64_t tokens = qkv.size(1);
  std::vector<at::Tensor> heads;
  const auto parts = qkv.chunk(3, 2);
  for (std::int64_t from = 0; from < parts[0].size(2); from += head_dim) {
    const auto part = [&](int i) {
      return parts[static_cast<std::size_t>(i)].narrow(2, from, head_dim);
    };
    at::Tensor scores = at::matmul(part(0), part(1).transpose(1, 2)) / std::sqrt(double(head_dim));
    if (causal) {
      scores = scores.masked_fill(at::ones({tokens, tokens}, at::kBool).triu(1), -INFINITY);
    }
    heads.push_back(at::matmul(scores.softmax(2), part(2)));
  }
  return at::cat(heads, 2);
}

}  // namespace

TEST_CASE("attention is the formula, with and without a look ahead, in values and gradients") {
  torch::manual_seed(1);
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    for (const std::int64_t head_dim : kHeadDims) {
      CAPTURE(head_dim);
      Attention layer({.head_dim = head_dim, .causal = causal});
      const at::Tensor ours = torch::randn({2, 5, 3 * 2 * head_dim}).requires_grad_(true);
      const at::Tensor peers = ours.detach().clone().requires_grad_(true);
      const at::Tensor output = layer.forward(ours),
                       expected = written_out(peers, head_dim, causal);
      CHECK(output.sizes() == at::IntArrayRef({2, 5, 2 * head_dim}));
      CHECK(at::allclose(output, expected, 1e-5, 1e-6));
      const at::Tensor shares = at::linspace(-1, 1, output.numel()).view_as(output);
      (output * shares).sum().backward();
      (expected * shares).sum().backward();
      CHECK(at::allclose(ours.grad(), peers.grad(), 1e-4, 1e-5));
    }
  }
}

TEST_CASE(
    "the number of heads follows from the width, so that a part of the heads is computed alike") {
  torch::manual_seed(2);
  Attention layer({.head_dim = 4, .causal = true});
  const at::Tensor qkv = torch::randn({2, 5, 3, 8});
  const at::Tensor whole = layer.forward(qkv.flatten(2));
  const at::Tensor second = layer.forward(qkv.narrow(3, 4, 4).flatten(2));  // its second head
  CHECK(at::allclose(whole.narrow(2, 4, 4), second, 1e-5, 1e-6));
}

TEST_CASE("a head of keys and values serves neighbouring heads of queries") {
  for (const std::int64_t head_dim : kHeadDims) {
    CAPTURE(head_dim);
    torch::manual_seed(5);
    const Attention layer({.head_dim = head_dim, .causal = true});
    const at::Tensor queries = torch::randn({2, 6, 5, head_dim});
    const at::Tensor keys = torch::randn({2, 2, 5, head_dim}),
                     values = torch::randn({2, 2, 5, head_dim});
    const auto spread = [](const at::Tensor& two) {
      return at::cat({two.narrow(1, 0, 1).expand({-1, 3, -1, -1}),
                      two.narrow(1, 1, 1).expand({-1, 3, -1, -1})},
                     1);
    };
    const at::Tensor output = layer.forward(queries, keys, values);
    CHECK(output.sizes() == at::IntArrayRef({2, 5, 6 * head_dim}));
    CHECK(at::allclose(output, layer.forward(queries, spread(keys), spread(values)), 1e-5, 1e-6));
  }
}

TEST_CASE("with a cache, tokens give in parts what they give together") {
  for (const std::int64_t head_dim : kHeadDims) {
    CAPTURE(head_dim);
    torch::manual_seed(6);
    const Attention layer({.head_dim = head_dim, .causal = true});
    const at::Tensor queries = torch::randn({1, 4, 7, head_dim});
    const at::Tensor keys = torch::randn({1, 2, 7, head_dim}),
                     values = torch::randn({1, 2, 7, head_dim});
    const at::Tensor together = layer.forward(queries, keys, values);
    units::Cache cache(8);
    std::int64_t begin = 0;
    for (const std::int64_t count : {3, 1, 2, 1}) {
      const auto part = [&](const at::Tensor& all) { return all.narrow(2, begin, count); };
      const at::Tensor output =
          layer.forward(part(queries), part(keys), part(values), {.cache = &cache});
      CHECK(at::allclose(output, together.narrow(1, begin, count), 1e-5, 1e-6));
      cache.advance(count);
      begin += count;
    }
  }
}

TEST_CASE("attention sees what the context says, in values and gradients") {
  for (const std::int64_t head_dim : kHeadDims) {
    CAPTURE(head_dim);
    torch::manual_seed(7);
    const Attention layer({.head_dim = head_dim, .causal = true});
    const at::Tensor qkv = torch::randn({1, 5, 3 * 2 * head_dim}).requires_grad_(true);
    at::Tensor sees = at::ones({1, 1, 5, 5}, at::kBool).tril();
    sees.slice(2, 2).slice(3, 0, 2).fill_(false);  // two texts, of 2 tokens and of 3
    const at::Tensor output = layer.forward(qkv, {.sees = sees});
    CHECK(at::allclose(output.narrow(1, 0, 2), layer.forward(qkv.narrow(1, 0, 2)), 1e-5, 1e-6));
    CHECK(at::allclose(output.narrow(1, 2, 3), layer.forward(qkv.narrow(1, 2, 3)), 1e-5, 1e-6));
    output.narrow(1, 2, 3).square().sum().backward();
    CHECK(qkv.grad().narrow(1, 0, 2).abs().max().item<double>() == 0);
  }
}

TEST_CASE("attention drops weights in training only, and draws them from the generator") {
  Attention layer({.head_dim = 4, .causal = true, .dropout = 0.5});
  torch::manual_seed(3);
  const at::Tensor qkv = torch::randn({1, 6, 3 * 8});
  torch::manual_seed(4);
  const at::Tensor first = layer.forward(qkv);
  CHECK_FALSE(at::equal(first, layer.forward(qkv)));
  torch::manual_seed(4);
  CHECK(at::equal(first, layer.forward(qkv)));
  layer.eval();
  CHECK(at::allclose(layer.forward(qkv), written_out(qkv, 4, true), 1e-5, 1e-6));
}

TEST_CASE("what the context has for tokens of several ranks stands for attention") {
  torch::manual_seed(6);
  const Attention attention({.head_dim = 4, .causal = true});
  const at::Tensor qkv = torch::randn({2, 5, 24});
  units::Context context;
  context.attend = [](const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
    CHECK(queries.sizes() == at::IntArrayRef({2, 2, 5, 4}));
    return queries + 2 * keys + 3 * values;
  };
  const auto parts = qkv.chunk(3, 2);
  CHECK(attention.forward(qkv, context).equal(parts[0] + 2 * parts[1] + 3 * parts[2]));
}

}  // namespace scaletrain::nn
