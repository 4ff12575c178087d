#include "lib/optim/clip.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/optim/norm.h"

namespace {

using namespace scaletrain;

TEST_CASE("gradients above the limit are scaled down, those below stay as they are") {
  const at::Tensor a = at::full({4}, 2.0), b = at::full({1}, 3.0);
  const at::Tensor norm = at::full({}, 5.0, at::kDouble);  // of 2, 2, 2, 2, 3
  optim::clip_grad_norm({a, b}, norm, 5.5);
  CHECK(at::equal(a, at::full({4}, 2.0)));
  optim::clip_grad_norm({a, b}, norm, 1.0);
  CHECK(a[0].item<double>() == doctest::Approx(2 / (5 + 1e-6)));  // torch.nn.utils.clip_grad_norm_
  CHECK(b[0].item<double>() == doctest::Approx(3 / (5 + 1e-6)));
}

TEST_CASE("gradients that are views of one block and in other layouts are clipped in place") {
  const at::Tensor block = at::ones({16});
  const at::Tensor left = block.narrow(0, 0, 8).view({2, 1, 2, 2}),
                   right = block.narrow(0, 8, 8).view({2, 4}).t();
  optim::clip_grad_norm({left, right}, at::full({}, 4.0, at::kDouble), 2.0);
  CHECK(at::allclose(block, at::full({16}, 0.5)));
}

TEST_CASE("nothing is written on a CPU where the norm is below the limit") {
  const at::Tensor a = at::full({4}, 2.0);
  const auto before = a._version();
  optim::clip_grad_norm({a}, optim::squared_norm({a}).sqrt(), 5.5);
  CHECK(a._version() == before);
  CHECK_NOTHROW(optim::clip_grad_norm({}, at::zeros({}), 1.0));
}

TEST_CASE("on another device gradients are always scaled, by a norm that is not read") {
  // A tensor on "meta" has no values: reading one would throw.
  const at::Tensor a = at::empty({4}, at::kMeta);
  const at::Tensor norm = at::empty({}, at::TensorOptions(at::kDouble).device(at::kMeta));
  const auto before = a._version();
  optim::clip_grad_norm({a}, norm, 5.5);
  CHECK(a._version() > before);
}

TEST_CASE("elements are limited one by one") {
  const at::Tensor a = at::tensor({-3.0F, 0.25F, 2.0F});
  optim::clip_grad_value({a}, 0.5);
  CHECK(at::equal(a, at::tensor({-0.5F, 0.25F, 0.5F})));
  CHECK_NOTHROW(optim::clip_grad_value({}, 0.5));
}

TEST_CASE("a unit's gradient is limited by its weights, in place, but not the head's") {
  const auto leaf = [](double weight, double gradient) {
    const at::Tensor tensor = at::full({2, 4}, weight).requires_grad_(true);
    tensor.mutable_grad() = at::full({2, 4}, gradient);
    tensor.mutable_grad()[1].mul_(0.001);
    return tensor;
  };
  const at::Tensor body = leaf(2, 3), head = leaf(2, 3), none = at::ones({2});
  const at::Tensor gradient = body.grad();
  optim::clip_grad_adaptive({{.name = "body", .tensor = body},
                             {.name = "head", .tensor = head, .is_head = true},
                             {.name = "none", .tensor = none}},
                            0.1);
  // Norms of 4 and 6: 6 becomes 0.1 * 4. The second unit's, 0.006, is below that.
  CHECK(gradient[0][0].item<double>() == doctest::Approx(3 * 0.4 / 6));
  CHECK(gradient[1][0].item<double>() == doctest::Approx(0.003));
  CHECK(head.grad()[0][0].item<double>() == 3);
}

TEST_CASE("a vector is one unit") {
  const at::Tensor bias = at::full({4}, 2.0).requires_grad_(true);
  bias.mutable_grad() = at::tensor({6.0F, 0.0F, 0.0F, 8.0F});
  optim::clip_grad_adaptive({{.name = "bias", .tensor = bias}}, 0.1);
  // Norms of 4 and 10: 10 becomes 0.1 * 4.
  CHECK(bias.grad()[0].item<double>() == doctest::Approx(6 * 0.4 / 10));
  CHECK(bias.grad()[3].item<double>() == doctest::Approx(8 * 0.4 / 10));
}

TEST_CASE("parts are limited as the whole is, in the precision that they have") {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    CAPTURE(type);
    const auto leaf = [&] {
      const auto values = at::TensorOptions(type);
      const at::Tensor tensor = at::arange(1, 9, values).div_(3).view({2, 4}).requires_grad_(true);
      tensor.mutable_grad() = at::arange(8, 0, -1, values).div_(7).view({2, 4});
      return tensor;
    };
    const at::Tensor whole = leaf(), weights = leaf().detach().clone(), cut = leaf();
    optim::clip_grad_adaptive({{.name = "whole", .tensor = whole}}, 0.1);

    const at::Tensor part = cut.detach().view({8}).requires_grad_(true);
    part.mutable_grad() = cut.grad().view({8});
    const units::NamedParameter named{.name = "cut", .tensor = part, .shape = {2, 4}};
    optim::clip_grad_adaptive(optim::Shards{.parts = {named}, .sum = [](const at::Tensor&) {}},
                              0.1);
    CHECK(at::equal(cut, weights));
    CHECK(at::allclose(cut.grad(), whole.grad(), type == at::kDouble ? 1e-15 : 1e-6, 0));
  }
}

TEST_CASE("a recipe limits by one of them") {
  const auto clipped = [](const recipe::Clip& limits) {
    const at::Tensor p = at::full({1, 2}, 3.0).requires_grad_(true);
    p.mutable_grad() = at::tensor({3.0F, 4.0F}).view({1, 2});
    optim::clip(limits, {{.name = "p", .tensor = p}}, {p.grad()}, at::full({}, 5.0, at::kDouble));
    return p.grad()[0][0].item<double>();
  };
  CHECK(clipped({}) == 3);
  CHECK(clipped({.norm = 1, .value = {}, .adaptive = {}}) == doctest::Approx(0.6));
  CHECK(clipped({.norm = {}, .value = 1, .adaptive = {}}) == 1);
  CHECK(clipped({.norm = {}, .value = {}, .adaptive = 0.5}) ==
        doctest::Approx(3 * 0.5 * std::sqrt(18) / 5));
}

TEST_CASE("not_finite is 1 where any value is not finite") {
  const at::Tensor one = at::ones({}), large = at::full({}, 1e300, at::kDouble);
  const at::Tensor nan = at::full({}, std::nan("")), inf = at::full({}, -HUGE_VAL, at::kDouble);
  const auto told = [](const std::vector<at::Tensor>& values) {
    const at::Tensor result = optim::not_finite(values);
    CHECK(result.dim() == 0);
    CHECK((result.scalar_type() == at::kFloat));
    return result.item<float>();
  };
  CHECK(told({one}) == 0);
  CHECK(told({large, one, one}) == 0);
  CHECK(told({nan}) == 1);
  CHECK(told({inf, one}) == 1);
  CHECK(told({one, large, nan}) == 1);
}

}  // namespace
