#include "lib/report/calibration.h"

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <cmath>

namespace scaletrain::report {
namespace {

// Two classes whose first has the probability `share` by softmax.
float logit(double share) { return static_cast<float>(std::log(share / (1 - share))); }

}  // namespace

TEST_CASE("the error is what confidence and accuracy differ by in each bin, weighed by samples") {
  // Confidence 0.9 twice, once right: |1 - 1.8|; 0.6 once, right: |1 - 0.6|; of 3 samples.
  const at::Tensor logits =
      at::tensor({logit(0.9), 0.0F, logit(0.9), 0.0F, 0.0F, logit(0.6)}).view({3, 2});
  const at::Tensor labels = at::tensor({0, 1, 1}).to(at::kLong);
  CHECK(calibration_error(logits, labels, 1) == doctest::Approx((0.8 + 0.4) / 3));
  // With temperature 2 the odds are their roots: 3 to 1 is 0.75.
  const double second = std::sqrt(0.6 / 0.4) / (1 + std::sqrt(0.6 / 0.4));
  CHECK(calibration_error(logits, labels, 2) == doctest::Approx((0.5 + 1 - second) / 3));
}

TEST_CASE("a confidence of exactly 1 is in the last bin") {
  const at::Tensor logits = at::tensor({1000.0F, 0.0F}).view({1, 2});
  CHECK(calibration_error(logits, at::tensor({0}).to(at::kLong), 1) == 0);
  CHECK(calibration_error(logits, at::tensor({1}).to(at::kLong), 1) == 1);
}

TEST_CASE("the temperature makes the mean loss the least") {
  // Three of four are right at odds of 81 to 1; right would be 3 to 1: 81^(1/T) = 3, so T = 4.
  const float odds = std::log(81.0F);
  const at::Tensor logits =
      at::tensor({odds, 0.0F, odds, 0.0F, odds, 0.0F, odds, 0.0F}).view({4, 2});
  const at::Tensor labels = at::tensor({0, 0, 0, 1}).to(at::kLong);
  const Calibration found = calibrate(logits, labels);
  CHECK(found.temperature == doctest::Approx(4).epsilon(1e-6));
  CHECK(found.loss_with == doctest::Approx(-(3 * std::log(0.75) + std::log(0.25)) / 4));
  CHECK(found.error == doctest::Approx(81.0 / 82 - 0.75));
  CHECK(found.error_with == doctest::Approx(0).epsilon(1e-6));
}

TEST_CASE("a temperature stays in its bounds where nothing holds it") {
  const at::Tensor logits = at::tensor({1.0F, 0.0F}).view({1, 2});
  const auto temperature = [&](std::int64_t label) {
    return calibrate(logits, at::tensor({label})).temperature;
  };
  CHECK(temperature(0) >= 0.01);  // the loss is 0 before it gets there
  CHECK(temperature(0) < 0.03);
  CHECK(temperature(1) / 100 == doctest::Approx(1).epsilon(0.01));
}

}  // namespace scaletrain::report
