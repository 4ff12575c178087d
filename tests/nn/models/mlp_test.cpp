#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {

TEST_CASE("mlp flattens the image and applies its layers in turn") {
  auto recipe = model_recipe("mlp");
  recipe.options["hidden"] = std::int64_t{5};
  const auto model = make_model(recipe, 2, 1);
  const auto parameters = model->named_parameters();
  CHECK(parameters.keys() == std::vector<std::string>{"fc1.weight", "fc1.bias", "fc2.weight",
                                                      "fc2.bias", "head.weight", "head.bias"});
  const at::Tensor image = torch::arange(12).to(at::kFloat).view({1, 3, 2, 2});
  at::Tensor expected = image.view({1, 12});  // 3 * 2 * 2
  for (const std::string layer : {"fc1", "fc2"}) {
    expected =
        (at::matmul(expected, parameters[layer + ".weight"].t()) + parameters[layer + ".bias"])
            .clamp_min(0);
  }
  expected = at::matmul(expected, parameters["head.weight"].t()) + parameters["head.bias"];
  CHECK(at::allclose(model->forward(image), expected, 1e-5, 1e-6));
}

TEST_CASE("mlp drops activations in training only") {
  auto recipe = model_recipe("mlp");
  recipe.options["dropout"] = 0.5;
  const auto model = make_model(recipe, 4, 1);
  const at::Tensor image = torch::ones({1, 3, 4, 4});
  CHECK_FALSE(at::equal(model->forward(image), model->forward(image)));
  model->eval();
  CHECK(at::equal(model->forward(image), model->forward(image)));
}

TEST_CASE("mlp's hidden layers are as wide as the recipe says, and its head is the last") {
  auto recipe = model_recipe("mlp");
  recipe.options["hidden"] = std::int64_t{24};
  recipe.options["layers"] = std::int64_t{2};
  const auto model = make_model(recipe, 8, 1);
  const auto parameters = model->named_parameters();
  CHECK(parameters["fc1.weight"].sizes() == at::IntArrayRef({24, 192}));
  CHECK(parameters["fc2.weight"].sizes() == at::IntArrayRef({24, 24}));
  CHECK(parameters["head.weight"].sizes() == at::IntArrayRef({10, 24}));
  CHECK(model->weight_rules().head == "head");
}

}  // namespace scaletrain::nn
