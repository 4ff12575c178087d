#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

// tests/parity/models_test.py compares it with torchvision's.
namespace scaletrain::nn {

TEST_CASE("a MobileNetV3 starts as torchvision's does") {
  const auto parameters = make_model(model_recipe("mobilenet_v3_small"), 32, 1)->named_parameters();
  const at::Tensor head = parameters["classifier.0.weight"];
  CHECK(head.std().item<double>() == doctest::Approx(0.01).scale(0).epsilon(0.02));
  CHECK(parameters["classifier.0.bias"].abs().max().item<double>() == 0);
  CHECK(at::equal(parameters["features.0.1.weight"], at::ones({16})));
  // He's, by the outputs of a kernel.
  const at::Tensor last = parameters["features.12.0.weight"];
  CHECK(last.sizes() == at::IntArrayRef({576, 96, 1, 1}));
  CHECK(last.std().item<double>() ==
        doctest::Approx(0.0589).scale(0).epsilon(0.03));  // sqrt(2 / 576)
}

TEST_CASE("the stem of a MobileNetV3 ends in hardswish, a first block in no activation") {
  const auto model = make_model(model_recipe("mobilenet_v3_small"), 32, 1);
  const auto units = model->units();
  torch::manual_seed(3);
  const units::Flow stem = units[0].run({torch::randn({4, 3, 32, 32})}, {});
  // The least value of hardswish: -3 / 8, at -1.5; a norm gives values on both sides.
  CHECK(stem[0].min().item<double>() == doctest::Approx(-0.375).epsilon(0.01));
  CHECK(stem[0].max().item<double>() > 1);
  CHECK(units[1].run(stem, {})[0].min().item<double>() < -1);
}

}  // namespace scaletrain::nn
