#include "lib/nn/cut_cross_entropy.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/nn/loss.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::nn {
namespace {

constexpr std::int64_t kClasses = 7;

// Logits so far apart that their exponentials overflow where no maximum is taken away.
at::Tensor logits() {
  at::manual_seed(5);
  return (at::randn({6, kClasses}, at::kDouble) * 900).requires_grad_();
}

at::Tensor targets() { return at::tensor({0, 6, -100, 3, 4, 2}, at::kLong); }

// The exchanges of ranks that have all of `whole` together: they give what all ranks' numbers add
// up to, computed from that.
units::ClassCut cut_of(const at::Tensor& whole, std::int64_t first) {
  const auto highest = whole.amax(1);
  return {.first = first,
          .classes = kClasses,
          .sum =
              [=](const at::Tensor& sums) {
                const at::Tensor counted = targets().clamp_min(0).unsqueeze(1);
                sums[0].copy_((whole - highest.unsqueeze(1)).exp().sum(1));
                sums[1].copy_(whole.gather(1, counted).squeeze(1) * targets().ge(0));
                if (sums.size(0) > 2) sums[2].copy_(whole.sum(1));
              },
          .max = [=](const at::Tensor& own) { own.copy_(highest); }};
}

TEST_CASE("the loss of cut logits and its gradient are PyTorch's of all of them") {
  for (const double smoothing : {0.0, 0.1}) {
    const at::Tensor whole = logits();
    const at::Tensor expected =
        at::cross_entropy_loss(whole, targets(), {}, at::Reduction::Sum, -100, smoothing);
    (expected * 3).backward();
    for (const auto& [first, count] : {std::pair{0, 4}, std::pair{4, 3}}) {
      const at::Tensor own = whole.detach().narrow(1, first, count).clone().requires_grad_();
      const at::Tensor loss =
          cut_cross_entropy(own, targets(), smoothing, cut_of(whole.detach(), first));
      (loss * 3).backward();
      CHECK(loss.allclose(expected, 1e-12));
      CHECK(own.grad().allclose(whole.grad().narrow(1, first, count), 1e-12, 1e-12));
    }
  }
}

TEST_CASE("what a rank gives the others is its share of each sum") {
  const at::Tensor own = at::tensor({1.0, 3.0, 2.0, 0.0}, at::kDouble).view({2, 2});
  std::vector<at::Tensor> given;
  units::ClassCut cut{.first = 2, .classes = 4, .sum = nullptr, .max = nullptr};
  cut.max = [&](const at::Tensor& highest) { given.push_back(highest.clone()); };
  cut.sum = [&](const at::Tensor& sums) { given.push_back(sums.clone()); };
  cut_cross_entropy(own, at::tensor({3, 0}, at::kLong), 0.1, cut);
  CHECK(given[0].equal(at::tensor({3.0, 2.0}, at::kDouble)));
  const double e2 = std::exp(-2.0);
  // Exponentials below the maximum, the target's logit where it is here, and the sum of logits.
  CHECK(given[1].allclose(
      at::tensor({1 + e2, 1 + e2, 3.0, 0.0, 4.0, 2.0}, at::kDouble).view({3, 2})));
}

TEST_CASE("a loss that needs all classes says so") {
  for (const char* const name : {"binary_cross_entropy", "focal"}) {
    recipe::Loss config;
    recipe::choose(config, *recipe::losses().find(name));
    CHECK_THROWS_AS(make_loss(config, at::kCPU)->cut_by({}), core::RecipeError);
  }
  recipe::Loss weighed;
  recipe::choose(weighed, *recipe::losses().find("cross_entropy"));
  weighed.class_weights = {1, 2};
  CHECK_THROWS_WITH_AS(
      make_loss(weighed, at::kCPU)->cut_by({}),
      "/loss: needs the logits of all classes, which tensor-parallel ranks divide\n"
      "  use cross_entropy without weights of classes, or leave out "
      "/parallel/tensor",
      core::RecipeError);
}

}  // namespace
}  // namespace scaletrain::nn
