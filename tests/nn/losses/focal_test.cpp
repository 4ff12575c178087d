#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/nn/loss.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::nn {
namespace {

double focal_of(double alpha, double gamma, const at::Tensor& logits, const at::Tensor& targets) {
  recipe::Loss loss;
  choose(loss, *recipe::losses().find("focal"));
  loss.options.at("alpha") = alpha;
  loss.options.at("gamma") = gamma;
  return make_loss(loss, at::kCPU)->sum(logits, targets).item<double>();
}

}  // namespace

// Numbers of other cases are compared with torchvision's in tests/parity/losses_test.py.
TEST_CASE("focal weighs down what is right already, and balances what is there and what is not") {
  // sigmoid(log 3) = 3/4: the class that is there is right by 3/4, the other one by 1/4.
  const at::Tensor logits = at::full({1, 2}, std::log(3.0), at::kFloat);
  const at::Tensor first = at::tensor({0}, at::kLong);
  const double hit = -std::log(0.75), miss = -std::log(0.25);
  CHECK(focal_of(-1, 0, logits, first) == doctest::Approx((hit + miss) / 2));
  CHECK(focal_of(-1, 2, logits, first) == doctest::Approx((hit / 16 + miss * 9 / 16) / 2));
  CHECK(focal_of(0.25, 2, logits, first) ==
        doctest::Approx((0.25 * hit / 16 + 0.75 * miss * 9 / 16) / 2));
}

}  // namespace scaletrain::nn
