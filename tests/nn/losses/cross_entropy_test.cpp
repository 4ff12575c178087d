#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "lib/nn/loss.h"

namespace scaletrain::nn {
namespace {

double loss_of(double label_smoothing, const at::Tensor& logits, const at::Tensor& targets) {
  recipe::Loss loss;
  loss.name = "cross_entropy";
  loss.label_smoothing = label_smoothing;
  const at::Tensor sum = make_loss(loss, at::kCPU)->sum(logits, targets);
  CHECK((sum.scalar_type() == at::kFloat));
  CHECK(sum.dim() == 0);
  return sum.item<double>();
}

}  // namespace

TEST_CASE("cross_entropy is the sum over the batch, not the mean") {
  const at::Tensor logits = torch::zeros({3, 4});
  const at::Tensor targets = torch::tensor({0, 1, 3}, at::kLong);
  CHECK(loss_of(0, logits, targets) == doctest::Approx(3 * std::log(4)));
}

TEST_CASE("cross_entropy spreads the smoothed share evenly over all classes") {
  // softmax([log 6, log 3, log 1]) = [0.6, 0.3, 0.1]; target 0 has the share 0.7 + 0.3 / 3 = 0.8,
  // the other two 0.1 each.
  const at::Tensor logits = torch::tensor({{std::log(6.0), std::log(3.0), 0.0}}, at::kFloat);
  const at::Tensor targets = torch::tensor({0}, at::kLong);
  const double expected = -0.8 * std::log(0.6) - 0.1 * std::log(0.3) - 0.1 * std::log(0.1);
  CHECK(loss_of(0.3, logits, targets) == doctest::Approx(expected));
}

TEST_CASE("cross_entropy of shares is that of the labels, weighed") {
  const at::Tensor logits = torch::tensor({{0.3, -1.0, 2.0}, {1.0, 0.5, 0.2}}, at::kFloat);
  const at::Tensor shares = torch::tensor({{0.75, 0.25, 0.0}, {0.0, 0.0, 1.0}}, at::kFloat);
  for (const double smoothing : {0.0, 0.1}) {
    const auto of_labels = [&](std::int64_t first) {
      return loss_of(smoothing, logits.narrow(0, 0, 1), torch::tensor({first}, at::kLong));
    };
    const double expected =
        0.75 * of_labels(0) + 0.25 * of_labels(1) +
        loss_of(smoothing, logits.narrow(0, 1, 1), torch::tensor({2}, at::kLong));
    CHECK(loss_of(smoothing, logits, shares) == doctest::Approx(expected));
  }
}

TEST_CASE("cross_entropy weighs classes, and its mean divides by the weights of the targets") {
  recipe::Loss loss;
  loss.name = "cross_entropy";
  const std::vector<std::int64_t> classes{0, 2, 2};
  CHECK(make_loss(loss, at::kCPU)->weighs_alike());
  CHECK(make_loss(loss, at::kCPU)->weight_of(classes) == 3);
  loss.class_weights = {0.5, 1, 4};
  const auto weighted = make_loss(loss, at::kCPU);
  CHECK_FALSE(weighted->weighs_alike());
  CHECK(weighted->weight_of(classes) == 8.5);  // 0.5 + 4 + 4
  const at::Tensor logits = torch::zeros({3, 3});
  CHECK(weighted->sum(logits, torch::tensor({0, 2, 2}, at::kLong)).item<double>() ==
        doctest::Approx(8.5 * std::log(3)));
}

TEST_CASE("cross_entropy of bf16 logits is summed in fp32") {
  // 3000 rows of log 2: a sum in bf16 would stop growing at 256.
  const at::Tensor logits = torch::zeros({3000, 2}, at::kBFloat16);
  const at::Tensor targets = torch::zeros({3000}, at::kLong);
  CHECK(loss_of(0, logits, targets) == doctest::Approx(3000 * std::log(2)));
}

}  // namespace scaletrain::nn
