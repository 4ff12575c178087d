#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {

TEST_CASE("vit_tiny takes its sizes from the recipe") {
  auto recipe = model_recipe("vit_tiny");
  recipe.options = {
      {"patch_size", std::int64_t{8}}, {"dim", std::int64_t{12}}, {"depth", std::int64_t{2}},
      {"heads", std::int64_t{4}},      {"mlp_ratio", 2.5},        {"dropout", 0.0}};
  const auto model = make_model(recipe, 16, 1);
  const auto parameters = model->named_parameters();
  CHECK(parameters["pos_embed"].sizes() == at::IntArrayRef({1, 5, 12}));  // (16 / 8)^2 + 1 tokens
  CHECK(parameters["patch_embed.proj.weight"].sizes() == at::IntArrayRef({12, 3, 8, 8}));
  CHECK(parameters["blocks.1.mlp.fc1.weight"].sizes() == at::IntArrayRef({30, 12}));  // 2.5 * 12
  CHECK_FALSE(parameters.contains("blocks.2.norm1.weight"));
  CHECK(model->forward(torch::zeros({2, 3, 16, 16})).sizes() == at::IntArrayRef({2, 10}));
}

TEST_CASE("vit_tiny drops activations in training only") {
  auto recipe = model_recipe("vit_tiny");
  recipe.options["dropout"] = 0.5;
  const auto model = make_model(recipe, 32, 1);
  const at::Tensor image = torch::ones({1, 3, 32, 32});
  CHECK_FALSE(at::equal(model->forward(image), model->forward(image)));
  model->eval();
  CHECK(at::equal(model->forward(image), model->forward(image)));
}

TEST_CASE("the order of patches matters to vit_tiny, by the position embedding") {
  const auto model = make_model(model_recipe("vit_tiny"), 32, 1);
  model->eval();
  torch::manual_seed(2);
  const at::Tensor image = torch::randn({1, 3, 32, 32});
  const at::Tensor rolled = at::roll(image, {4}, {3});  // every patch moves by one
  CHECK_FALSE(at::allclose(model->forward(image), model->forward(rolled)));
}

}  // namespace scaletrain::nn
