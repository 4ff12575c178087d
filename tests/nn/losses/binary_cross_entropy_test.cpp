#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "lib/nn/loss.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::nn {
namespace {

double bce_of(const std::map<std::string, recipe::Component::Value>& options,
              const at::Tensor& logits, const at::Tensor& targets) {
  recipe::Loss loss;
  choose(loss, *recipe::losses().find("binary_cross_entropy"));
  for (const auto& [key, value] : options) loss.options.at(key) = value;
  const at::Tensor sum = make_loss(loss, at::kCPU)->sum(logits, targets);
  CHECK((sum.scalar_type() == at::kFloat));
  return sum.item<double>();
}

}  // namespace

// Numbers of other cases are compared with timm's in tests/parity/losses_test.py.
TEST_CASE("binary_cross_entropy looks at every class by itself") {
  // sigmoid(log 3) = 3/4.
  const at::Tensor logits = at::full({1, 2}, std::log(3.0), at::kFloat);
  const at::Tensor first = at::tensor({0}, at::kLong);
  const double hit = -std::log(0.75), miss = -std::log(0.25);
  CHECK(bce_of({}, logits, first) == doctest::Approx((hit + miss) / 2));
  CHECK(bce_of({{"sum_classes", true}}, logits, first) == doctest::Approx(hit + miss));
  CHECK(bce_of({{"pos_weight", 3.0}}, logits, first) == doctest::Approx((3 * hit + miss) / 2));
  const at::Tensor shares = at::tensor({0.3, 0.2}, at::kFloat).view({1, 2});
  CHECK(bce_of({}, logits, shares) ==
        doctest::Approx((0.3 * hit + 0.7 * miss + 0.2 * hit + 0.8 * miss) / 2));
  CHECK(bce_of({{"target_threshold", 0.25}}, logits, shares) == doctest::Approx((hit + miss) / 2));
  CHECK(bce_of({{"target_threshold", 0.0}}, logits, shares) == doctest::Approx(hit));
}

TEST_CASE("binary_cross_entropy of bf16 logits is summed in fp32") {
  CHECK(bce_of({}, at::zeros({3000, 2}, at::kBFloat16), at::zeros({3000}, at::kLong)) ==
        doctest::Approx(3000 * std::log(2)));
}

}  // namespace scaletrain::nn
