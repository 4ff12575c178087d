#include "lib/nn/sigmoid_targets.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::nn {

TEST_CASE("targets become shares of every class, with a part of them spread evenly") {
  const at::Tensor logits = at::zeros({2, 4}, at::kDouble);
  const at::Tensor classes = at::tensor({1, 3}, at::kLong);
  const at::Tensor hot = at::tensor({0., 1., 0., 0., 0., 0., 0., 1.}, at::kDouble).view({2, 4});
  CHECK((at::equal(shares_for(logits, classes, 0), hot)));
  CHECK((at::equal(shares_for(logits, hot.to(at::kFloat), 0), hot)));
  // 0.2 of each target is spread: 0.05 for every class, 0.8 more for its own.
  const at::Tensor smoothed = hot * 0.8 + 0.05;
  CHECK((at::allclose(shares_for(logits, classes, 0.2), smoothed, 0, 1e-15)));
  CHECK((at::allclose(shares_for(logits, hot, 0.2), smoothed, 0, 1e-15)));
  CHECK((shares_for(logits.to(at::kFloat), hot, 0.2).scalar_type() == at::kFloat));
}

TEST_CASE("a sample's loss is the classes' mean or sum, each with its weight") {
  const at::Tensor losses = at::tensor({1., 2., 3., 4.}, at::kDouble).view({2, 2});
  recipe::Loss loss;
  const at::Tensor none = class_weights_of(loss, at::kCPU);
  loss.class_weights = {1, 10};
  const at::Tensor weights = class_weights_of(loss, at::kCPU);
  CHECK(sum_over_samples(losses, none, false).item<double>() == 5);     // 1.5 + 3.5
  CHECK(sum_over_samples(losses, none, true).item<double>() == 10);     // 3 + 7
  CHECK(sum_over_samples(losses, weights, true).item<double>() == 64);  // 1 + 20 + 3 + 40
  CHECK(sum_over_samples(losses, weights, false).item<double>() == 32);
}

}  // namespace scaletrain::nn
