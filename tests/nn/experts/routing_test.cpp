#include "lib/nn/experts/routing.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <vector>

namespace scaletrain::nn {
namespace {

using at::Tensor;
using Rows = std::vector<std::int64_t>;

// Four tokens, three experts: the first three choose expert 2 before expert 0, the last one expert
// 0 before expert 2; nobody chooses expert 1.
Tensor skewed() {
  return at::tensor({0.3, 0.1, 0.6, 0.2, 0.1, 0.7, 0.4, 0.1, 0.5, 0.8, 0.05, 0.15}, at::kFloat)
      .view({4, 3});
}

// Expert e's answer to a row: e + 1 times it.
Tensor answers(const Tensor& rows, const Routing& routing) {
  std::vector<Tensor> result;
  const std::vector<Tensor> parts = rows.split_with_sizes(routing.rows);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    result.push_back(parts[i] * static_cast<double>(i + 1));
  }
  return at::cat(result);
}

Tensor mixed(const Tensor& tokens, const Routing& routing) {
  return from_experts(answers(to_experts(tokens, routing), routing), routing);
}

}  // namespace

TEST_CASE("rows are sorted by expert, first choices before second ones, in the tokens' order") {
  const Routing routing = route(skewed(), 2);
  CHECK(routing.rows == Rows{4, 0, 4});
  CHECK(at::equal(routing.chosen, at::tensor({4, 0, 4}, at::kLong)));
  // Choices 0 to 3 are the tokens' first ones, 4 to 7 their second ones.
  CHECK(at::equal(routing.order, at::tensor({3, 4, 5, 6, 0, 1, 2, 7}, at::kLong)));
  CHECK(at::equal(routing.places, at::tensor({4, 5, 6, 0, 1, 2, 3, 7}, at::kLong)));
  CHECK_FALSE(routing.kept.defined());
}

TEST_CASE("a token's weights are its experts' probabilities, divided by their sum") {
  const Routing routing = route(skewed(), 2);
  CHECK(routing.weights[0][0].item<float>() == doctest::Approx(0.6 / 0.9));
  CHECK(routing.weights[1][0].item<float>() == doctest::Approx(0.3 / 0.9));
  CHECK(at::allclose(routing.weights.sum(0), at::ones({4})));
  CHECK(at::equal(route(skewed(), 1).weights, at::ones({1, 4})));
}

TEST_CASE("each token gets the sum of its experts' answers times their weights") {
  at::manual_seed(1);
  const Tensor probabilities = at::randn({50, 6}).softmax(-1), tokens = at::randn({50, 7});
  const Routing routing = route(probabilities, 3);
  // Written out: expert e answers e + 1 times the token.
  const auto [best, experts] = probabilities.topk(3, -1);
  const Tensor factors = (best / best.sum(-1, true) * (experts + 1)).sum(-1, true);
  CHECK(at::allclose(mixed(tokens, routing), tokens * factors, 1e-5, 1e-6));
}

TEST_CASE("gradients of tokens and probabilities are those of the same written with indices") {
  at::manual_seed(2);
  for (const std::int64_t capacity : {0, 3}) {
    CAPTURE(capacity);
    const Tensor logits = at::randn({20, 4}, at::kDouble).requires_grad_();
    const Tensor tokens = at::randn({20, 5}, at::kDouble).requires_grad_();
    const Routing routing = route(logits.softmax(-1), 2, {}, capacity);
    mixed(tokens, routing).square().sum().backward();
    const Tensor of_logits = logits.grad().clone(), of_tokens = tokens.grad().clone();
    logits.mutable_grad().reset();
    tokens.mutable_grad().reset();

    const auto [best, experts] = logits.softmax(-1).topk(2, -1);
    Tensor weights = best / best.sum(-1, true);
    if (capacity > 0) weights = weights * routing.kept.view({2, 20}).t();
    (tokens * (weights * (experts + 1)).sum(-1, true)).square().sum().backward();
    CHECK(at::allclose(of_logits, logits.grad(), 1e-10, 1e-12));
    CHECK(at::allclose(of_tokens, tokens.grad(), 1e-10, 1e-12));
  }
}

TEST_CASE("equal probabilities still choose as many experts as asked, each once") {
  const Routing routing = route(at::full({5, 4}, 0.25), 3);
  CHECK(routing.chosen.sum().item<std::int64_t>() == 15);
  CHECK(routing.chosen.max().item<std::int64_t>() <= 5);  // no token chooses one twice
  CHECK(at::allclose(routing.weights, at::full({3, 5}, 1.0 / 3)));
}

TEST_CASE("what is over the capacity is dropped: later tokens, and second choices before first") {
  // Expert 2 is first choice of tokens 0, 1, 2 and second of 3; expert 0 the other way.
  const Routing routing = route(skewed(), 2, {}, 2);
  CHECK(routing.rows == Rows{2, 0, 2});
  CHECK(at::equal(routing.chosen, at::tensor({4, 0, 4}, at::kLong)));  // asked for, dropped or not
  CHECK(at::equal(routing.order, at::tensor({3, 4, 0, 1}, at::kLong)));
  const Tensor kept = routing.kept.view({2, 4}).to(at::kLong);
  CHECK(at::equal(kept, at::tensor({1, 1, 0, 1, 1, 0, 0, 0}, at::kLong).view({2, 4})));
  // A dropped choice weighs nothing, and the others stay as they were.
  CHECK(routing.weights[0][1].item<float>() == doctest::Approx(0.7 / 0.9));
  CHECK(routing.weights[1][1].item<float>() == 0);
  // Token 2 lost both: nothing is added to it.
  const Tensor tokens = at::ones({4, 3});
  CHECK(at::equal(mixed(tokens, routing)[2], at::zeros({3})));
  CHECK(mixed(tokens, routing)[3][0].item<float>() == doctest::Approx(0.8 / 0.95));
}

TEST_CASE("a token that is dropped by all of its experts has no gradient from them") {
  const Tensor tokens = at::ones({4, 3}).requires_grad_();
  mixed(tokens, route(skewed(), 2, {}, 2)).sum().backward();
  CHECK(at::equal(tokens.grad()[2], at::zeros({3})));
  CHECK(tokens.grad()[0][0].item<float>() == doctest::Approx((3 * 0.6 + 0.3) / 0.9));
}

TEST_CASE("an expert's capacity is its even share times the factor, rounded up") {
  CHECK(capacity_of(0, 100, 2, 8) == 0);      // none
  CHECK(capacity_of(1, 100, 2, 8) == 25);     // 100 x 2 / 8
  CHECK(capacity_of(1.25, 100, 2, 8) == 32);  // 31.25
  CHECK(capacity_of(0.001, 1, 1, 8) == 1);
}

TEST_CASE("a bias chooses experts and does not weigh them") {
  const Tensor bias = at::tensor({0.0, 1.0, 0.0}, at::kFloat);
  const Routing routing = route(skewed(), 1, bias);
  CHECK(routing.rows == Rows{0, 4, 0});
  CHECK(at::equal(routing.weights, at::ones({1, 4})));
  const Routing two = route(skewed(), 2, bias);
  CHECK(two.weights[0][0].item<float>() == doctest::Approx(0.1 / 0.7));  // of 0.1 and 0.6
}

TEST_CASE("the bias of an expert moves against its load, by the rate") {
  const Tensor bias = at::tensor({0.5, 0.0, -0.5}, at::kFloat);
  // The mean is 4.
  CHECK(at::allclose(moved_bias(bias, at::tensor({8, 4, 0}, at::kLong), 0.1),
                     at::tensor({0.4, 0.0, -0.4}, at::kFloat)));
}

TEST_CASE(
    "the balance loss is the number of choices where experts are even, that of experts at most") {
  // Four experts, one choice; 8 tokens.
  const Tensor even = at::tensor({2.0, 2.0, 2.0, 2.0}, at::kFloat);
  CHECK(balance_loss(at::stack({even, even}), 8).item<float>() == doctest::Approx(1));
  CHECK(balance_loss(at::stack({even * 2, even}), 8).item<float>() == doctest::Approx(2));
  const Tensor one = at::tensor({8.0, 0.0, 0.0, 0.0}, at::kFloat);
  CHECK(balance_loss(at::stack({one, one}), 8).item<float>() == doctest::Approx(4));
}

}  // namespace scaletrain::nn
