// Blocks of keys one after the other against at::scaled_dot_product_attention on all of them.
#include "lib/parallel/attention_block.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <optional>
#include <utility>
#include <vector>

namespace scaletrain::parallel {
namespace {

using at::Tensor;

constexpr double kMost = 1e-5;  // sums of at most 600 numbers of about 1, in fp32

struct Attention {
  Tensor queries, keys, values, gradient;  // of the output
};

Attention draw(std::int64_t queries, std::int64_t keys, std::int64_t heads,
               std::int64_t key_heads) {
  at::manual_seed(1);
  return {.queries = at::randn({2, heads, queries, 8}).requires_grad_(),
          .keys = at::randn({2, key_heads, keys, 8}).requires_grad_(),
          .values = at::randn({2, key_heads, keys, 8}).requires_grad_(),
          .gradient = at::randn({2, heads, queries, 8})};
}

// Of LibTorch; gradients in the leaves.
Tensor whole(const Attention& all, const std::optional<Tensor>& sees, bool causal) {
  const std::int64_t times = all.queries.size(1) / all.keys.size(1);
  const Tensor output =
      at::scaled_dot_product_attention(all.queries, all.keys.repeat_interleave(times, 1),
                                       all.values.repeat_interleave(times, 1), sees, 0.0, causal);
  output.backward(all.gradient);
  return output.detach();
}

double off(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

// The first block is what each query sees keys of.
struct Block {
  std::int64_t first, count;
  Visible visible;
};

void check_blocks(const Attention& all, const std::vector<Block>& blocks, const Tensor& output) {
  const at::NoGradGuard no_grad;
  const auto part_of = [](const Tensor& keys, const Tensor& values, const Block& block) {
    return KeyBlock{.keys = keys.narrow(2, block.first, block.count),
                    .values = values.narrow(2, block.first, block.count)};
  };
  const Mixed mixed = Mixed::none(all.queries);
  for (const Block& block : blocks) {
    attend(all.queries, part_of(all.keys, all.values, block), block.visible, mixed);
  }
  CHECK(off(mixed.output, output) < kMost);
  const MixedGradient gradient{
      .output = all.gradient, .along = (all.gradient * mixed.output).sum(-1), .sums = mixed.sums};
  const Tensor queries = at::zeros_like(all.queries), keys = at::zeros_like(all.keys),
               values = at::zeros_like(all.values);
  for (const Block& block : blocks) {
    attend_backward(all.queries, part_of(all.keys, all.values, block), block.visible, gradient,
                    queries, part_of(keys, values, block));
  }
  CHECK(off(queries, all.queries.grad()) < kMost);
  CHECK(off(keys, all.keys.grad()) < kMost);
  CHECK(off(values, all.values.grad()) < kMost);
}

TEST_CASE("blocks of keys, in any order, give attention on all of them and its gradients") {
  const Attention all = draw(5, 9, 4, 4);
  check_blocks(all, {{4, 5, {}}, {0, 1, {}}, {1, 3, {}}}, whole(all, std::nullopt, false));
}

TEST_CASE("more queries than are computed at a time see what is before them") {
  const Attention all = draw(600, 600, 2, 2);
  check_blocks(all, {{0, 600, {.causal = true}}}, whole(all, std::nullopt, true));
}

TEST_CASE("a head of keys serves neighbouring heads of queries") {
  const Attention all = draw(6, 6, 6, 2);
  check_blocks(all, {{0, 6, {.causal = true}}}, whole(all, std::nullopt, true));
}

TEST_CASE("documents do not attend to each other, also if a block has no key of one") {
  const Attention all = draw(6, 10, 4, 2);
  // Queries are the keys 4 to 9.
  const Tensor documents =
      at::tensor({0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}, at::kLong)
          .view({2, 10});
  const Tensor queries = documents.narrow(1, 4, 6);
  const Tensor sees = queries.unsqueeze(2).eq(documents.unsqueeze(1)).tril(4).unsqueeze(1);
  const Tensor output = whole(all, sees, false);
  check_blocks(
      all, {{4, 6, {true, queries, queries}}, {0, 4, {false, queries, documents.narrow(1, 0, 4)}}},
      output);
}

TEST_CASE("half types are computed in fp32") {
  Attention all = draw(7, 7, 4, 4);
  for (Tensor* const one : {&all.queries, &all.keys, &all.values}) {
    *one = one->detach().to(at::kBFloat16);
  }
  const Mixed mixed = Mixed::none(all.queries);
  attend(all.queries, {.keys = all.keys, .values = all.values}, {.causal = true}, mixed);
  const Tensor expected =
      at::scaled_dot_product_attention(all.queries.to(at::kFloat), all.keys.to(at::kFloat),
                                       all.values.to(at::kFloat), std::nullopt, 0.0, true);
  CHECK((mixed.output.scalar_type() == at::kFloat));
  CHECK(off(mixed.output, expected) < kMost);
}

}  // namespace
}  // namespace scaletrain::parallel
