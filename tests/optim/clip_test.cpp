#include "lib/optim/clip.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

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

TEST_CASE("the limit may be a tensor; an infinite one clips nothing") {
  const at::Tensor a = at::full({4}, 2.0);
  const at::Tensor norm = at::full({}, 4.0, at::kDouble);
  optim::clip_grad_norm({a}, norm, at::full({}, HUGE_VAL, at::kDouble));
  CHECK(at::equal(a, at::full({4}, 2.0)));
  optim::clip_grad_norm({a}, norm, at::full({}, 1.0, at::kDouble));
  CHECK(a[0].item<double>() == doctest::Approx(2 / (4 + 1e-6)));
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
    const units::NamedParameter named{
        .name = "cut", .tensor = part, .shard = units::Shard{.shape = {2, 4}}};
    optim::clip_grad_adaptive(
        optim::ShardedParameters{.parts = {named}, .sum = [](const at::Tensor&) {}}, 0.1);
    CHECK(at::equal(cut, weights));
    CHECK(at::allclose(cut.grad(), whole.grad(), type == at::kDouble ? 1e-15 : 1e-6, 0));
  }
}

// What a recipe may ask for, each so that it changes gradients.
struct ClipMode {
  std::string name;
  recipe::Clip limits;
};
const std::vector<ClipMode>& clip_modes() {
  static const std::vector<ClipMode> modes{
      {"none", {}},
      {"norm", {.norm = 0.5, .value = {}, .adaptive = {}}},
      {"value", {.norm = {}, .value = 0.25, .adaptive = {}}},
      {"adaptive", {.norm = {}, .value = {}, .adaptive = 0.1}},
  };
  return modes;
}

// The same in fp64, by the formulas of lib/optim/clip.h.
at::Tensor clipped_in_fp64(const recipe::Clip& limits, const at::Tensor& weights,
                           const at::Tensor& gradient, double norm) {
  if (limits.norm) return gradient * std::min(1.0, *limits.norm / (norm + 1e-6));
  if (limits.value) return gradient.clamp(-*limits.value, *limits.value);
  if (!limits.adaptive) return gradient;
  const at::Tensor most = weights.square().sum(1, true).sqrt().clamp_min(1e-3) * *limits.adaptive;
  const at::Tensor norms = gradient.square().sum(1, true).sqrt();
  return gradient * at::where(norms.lt(most), at::ones_like(norms), most / norms);
}

// Clips two ranks' parts of one parameter, [0, 11) and [11, 20) of its elements: the sum over the
// ranks adds what the other rank gives to its own sum.
void clip_parts(const recipe::Clip& limits, const std::vector<at::Tensor>& parts,
                const std::vector<std::int64_t>& shape, const at::Tensor& norm) {
  const auto named = [&](std::size_t rank, const at::Tensor& tensor) -> units::NamedParameter {
    return {.name = "cut",
            .tensor = tensor,
            .shard = units::Shard{.shape = shape},
            .begin = rank == 0 ? 0 : parts[0].numel()};
  };
  std::vector<at::Tensor> given(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {  // on copies
    const at::Tensor copy = parts[rank].detach().clone().requires_grad_(true);
    copy.mutable_grad() = parts[rank].grad().clone();
    const auto note = [&, rank](const at::Tensor& values) { given[rank] = values.clone(); };
    optim::clip(limits, {}, {copy.grad()}, norm, {.parts = {named(rank, copy)}, .sum = note});
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto add = [&, rank](const at::Tensor& values) { values.add_(given[1 - rank]); };
    optim::clip(limits, {}, {parts[rank].grad()}, norm,
                {.parts = {named(rank, parts[rank])}, .sum = add});
  }
}

TEST_CASE("each mode of clipping keeps weights and norms, in each dtype, sharded or not") {
  const std::vector<std::int64_t> shape{4, 5};
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const double tolerance = type == at::kDouble ? 1e-14 : type == at::kFloat ? 1e-6 : 2e-2;
    at::manual_seed(7);
    const at::Tensor weights = at::randn(shape, at::kDouble).to(type);
    const at::Tensor gradient = at::randn(shape, at::kDouble).to(type);
    const at::Tensor norm = optim::squared_norm({gradient}).sqrt(), same_norm = norm.clone();
    for (const ClipMode& mode : clip_modes()) {
      const at::Tensor expected = clipped_in_fp64(mode.limits, weights.to(at::kDouble),
                                                  gradient.to(at::kDouble), norm.item<double>());
      for (const bool sharded : {false, true}) {
        CAPTURE(type);
        CAPTURE(mode.name);
        CAPTURE(sharded);
        const at::Tensor own = weights.clone(), grad = gradient.clone();
        if (sharded) {
          std::vector<at::Tensor> parts;
          for (const auto& [begin, count] : {std::pair{0, 11}, std::pair{11, 9}}) {
            parts.push_back(own.view({-1}).narrow(0, begin, count).detach().requires_grad_(true));
            parts.back().mutable_grad() = grad.view({-1}).narrow(0, begin, count);
          }
          clip_parts(mode.limits, parts, shape, norm);
        } else {
          const at::Tensor leaf = own.detach().requires_grad_(true);
          leaf.mutable_grad() = grad;
          optim::clip(mode.limits, {{.name = "whole", .tensor = leaf}}, {grad}, norm);
        }
        CHECK(at::equal(own, weights));
        CHECK(at::equal(norm, same_norm));
        CHECK(at::allclose(grad.to(at::kDouble), expected, tolerance, tolerance));
        CHECK(at::equal(grad, gradient) == (mode.name == "none"));
      }
    }
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
