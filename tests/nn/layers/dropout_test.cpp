#include "lib/nn/layers/dropout.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/nn/layers/attention.h"

namespace scaletrain::nn {
namespace {

// What a rank with this place draws: in a layer that draws apart, and after it.
struct Drawn {
  at::Tensor apart, alike;
};

Drawn drawn_at(std::optional<std::uint64_t> place, std::uint64_t seed = 7) {
  at::manual_seed(seed);
  Dropout layer(0.5);
  if (place) layer.draw_apart(*place);
  const at::Tensor apart = layer.forward(at::ones({64}));
  return {apart, layer.forward(at::ones({64}))};
}

TEST_CASE("rank-local draws differ between ranks, and later draws are equal again") {
  at::manual_seed(7);
  Dropout apart(0.5), alike(0.5);
  apart.draw_apart(0);
  const at::Tensor first = apart.forward(at::ones({64})), after = alike.forward(at::ones({64}));
  at::manual_seed(7);
  Dropout other(0.5);
  other.draw_apart(1);
  CHECK_FALSE(other.forward(at::ones({64})).equal(first));
  CHECK(alike.forward(at::ones({64})).equal(after));
  CHECK_FALSE(after.equal(first));
}

TEST_CASE("rank-local draws are a function of the seed, different in each call") {
  CHECK(drawn_at(3).apart.equal(drawn_at(3).apart));
  CHECK_FALSE(drawn_at(3).apart.equal(drawn_at(3).alike));
  CHECK_FALSE(drawn_at(3, 7).apart.equal(drawn_at(3, 8).apart));
}

TEST_CASE("without a place dropout is PyTorch's") {
  const at::Tensor own = drawn_at(std::nullopt).apart;
  at::manual_seed(7);
  CHECK(own.equal(at::dropout(at::ones({64}), 0.5, true)));
}

TEST_CASE("nothing is drawn in evaluation") {
  Dropout layer(0.5);
  layer.draw_apart(1);
  layer.eval();
  at::manual_seed(7);
  CHECK(layer.forward(at::ones({8})).equal(at::ones({8})));
  const at::Tensor next = at::rand({2});
  at::manual_seed(7);
  CHECK(next.equal(at::rand({2})));
}

TEST_CASE("attention drops other weights of its heads than another rank does") {
  const auto mixed = [](std::uint64_t place) {
    at::manual_seed(7);
    Attention layer({.head_dim = 4, .dropout = 0.5});
    layer.draw_apart(place);
    return layer.forward(at::ones({2, 8, 3 * 8}));
  };
  CHECK(mixed(0).equal(mixed(0)));
  CHECK_FALSE(mixed(0).equal(mixed(1)));
}

}  // namespace
}  // namespace scaletrain::nn
