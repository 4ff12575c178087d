#include "lib/nn/layers/rotary.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace scaletrain::nn {
namespace {

// By how many radians pair `pair` is turned at `position`: what becomes of (1, 0).
double angle(Rotary& rotary, std::int64_t head_dim, std::int64_t pair, std::int64_t position) {
  const at::Tensor input = at::zeros({1, 1, 1, head_dim});
  input[0][0][0][pair] = 1;
  const at::Tensor output = rotary.forward(input, position)[0][0][0];
  return std::atan2(output[pair + head_dim / 2].item<double>(), output[pair].item<double>());
}

}  // namespace

TEST_CASE("a pair is turned by position / theta^(2 pair / head_dim)") {
  Rotary rotary({.head_dim = 4, .positions = 8, .theta = 100});
  CHECK(angle(rotary, 4, 0, 0) == doctest::Approx(0));
  CHECK(angle(rotary, 4, 0, 3) == doctest::Approx(3));         // theta^0 = 1
  CHECK(angle(rotary, 4, 1, 3) == doctest::Approx(3.0 / 10));  // 100^(2 / 4) = 10
}

TEST_CASE("lengths stay, and products depend on the distance of two positions alone") {
  torch::manual_seed(1);
  Rotary rotary({.head_dim = 8, .positions = 64});
  const at::Tensor queries = torch::randn({1, 2, 1, 8}), keys = torch::randn({1, 2, 1, 8});
  const auto product = [&](std::int64_t query, std::int64_t key) {
    return (rotary.forward(queries, query) * rotary.forward(keys, key)).sum().item<double>();
  };
  CHECK(rotary.forward(queries, 5).norm().item<double>() ==
        doctest::Approx(queries.norm().item<double>()));
  CHECK(product(9, 4) == doctest::Approx(product(45, 40)).epsilon(1e-4));
  CHECK(product(9, 4) != doctest::Approx(product(9, 5)).epsilon(1e-4));
}

TEST_CASE("tokens stand at neighbouring positions, and keep their type") {
  torch::manual_seed(2);
  Rotary rotary({.head_dim = 4, .positions = 8});
  const at::Tensor input = torch::randn({2, 3, 4, 4});
  const at::Tensor output = rotary.forward(input, 2);
  CHECK(at::allclose(output.narrow(2, 1, 1), rotary.forward(input.narrow(2, 1, 1), 3)));
  CHECK((rotary.forward(input.to(at::kBFloat16)).scalar_type() == at::kBFloat16));
}

TEST_CASE("the angles go where the tokens are") {
  Rotary rotary({.head_dim = 4, .positions = 8});
  CHECK(rotary.forward(torch::randn({1, 1, 2, 4}).to(at::kMeta), 2).is_meta());
}

TEST_CASE("linear scaling turns by a factor less") {
  Rotary rotary({.head_dim = 4,
                 .positions = 8,
                 .theta = 100,
                 .scaling = {.kind = RotaryScaling::Kind::kLinear, .factor = 4}});
  CHECK(angle(rotary, 4, 0, 2) == doctest::Approx(2.0 / 4));
  CHECK(angle(rotary, 4, 1, 2) == doctest::Approx(2.0 / 10 / 4));
}

TEST_CASE("Llama 3's scaling leaves fast pairs, slows down slow ones, and blends between") {
  // Of an original sequence of 100 pi positions the pairs make 50, 5 and 0.5 turns.
  Rotary rotary({.head_dim = 6,
                 .positions = 8,
                 .theta = 1000,
                 .scaling = {.kind = RotaryScaling::Kind::kLlama3,
                             .factor = 8,
                             .low = 1,
                             .high = 9,
                             .original = 314}});
  CHECK(angle(rotary, 6, 0, 2) == doctest::Approx(2));              // 50 turns: more than high
  CHECK(angle(rotary, 6, 2, 2) == doctest::Approx(2.0 / 100 / 8));  // half a turn: less than low
  const double turns = 314 / 10.0 / (2 * std::numbers::pi);         // 5
  const double fast = (turns - 1) / (9 - 1);                        // about a half
  CHECK(angle(rotary, 6, 1, 2) == doctest::Approx(2.0 / 10 * (fast + (1 - fast) / 8)));
}

TEST_CASE("tokens of any places are turned as among all tokens") {
  torch::manual_seed(3);
  Rotary rotary({.head_dim = 4, .positions = 8});
  const at::Tensor input = torch::randn({2, 3, 6, 4});
  const at::Tensor places = at::tensor({0, 2, 5}, at::kLong);
  CHECK(rotary.forward(input.index_select(2, places), places)
            .equal(rotary.forward(input).index_select(2, places)));
}

}  // namespace scaletrain::nn
