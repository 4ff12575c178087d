#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {

TEST_CASE("vit_tiny takes its sizes from the recipe") {
  auto recipe = model_recipe("vit_tiny");
  for (const auto& [key, value] : {std::pair{"patch_size", 8}, std::pair{"dim", 12},
                                   std::pair{"depth", 2}, std::pair{"heads", 4}}) {
    recipe.options[key] = std::int64_t{value};
  }
  recipe.options["mlp_ratio"] = 2.5;
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

TEST_CASE(
    "without a class token a vision transformer has one token less and its norm after the mean") {
  auto recipe = model_recipe("vit_small");
  recipe.options["pool"] = std::string("avg");
  const auto parameters = make_blank_model(recipe, 32)->named_parameters();
  CHECK(parameters["pos_embed"].size(1) == 4);  // (32 / 16)^2
  CHECK_FALSE(parameters.contains("cls_token"));
  CHECK_FALSE(parameters.contains("norm.weight"));
  CHECK(parameters.contains("fc_norm.weight"));
}

TEST_CASE("drop_path leaves out branches in training only, and none of the first block") {
  auto recipe = model_recipe("vit_small");
  recipe.options["drop_path"] = 0.9;
  const auto model = make_model(recipe, 32, 1);
  torch::manual_seed(2);
  const at::Tensor image = torch::randn({1, 3, 32, 32}).expand({16, 3, 32, 32});
  const auto units = model->units();
  const units::Flow first = units[1].run(units[0].run({image}, {}), {});
  CHECK(at::allclose(first[0][0], first[0][1]));
  const at::Tensor last = units[2].run(first, {})[0];
  std::int64_t untouched = 0;
  for (std::int64_t i = 0; i < 16; ++i) untouched += at::equal(last[i], first[0][i]) ? 1 : 0;
  CHECK(untouched > 6);  // both branches of a sample: 0.81 of 16; 6 or fewer: once in 20,000
  CHECK(untouched < 16);
  model->eval();
  const at::Tensor logits = model->forward(image);
  CHECK(at::allclose(logits[0], logits[1]));
}

TEST_CASE("layer scale begins as the recipe says and multiplies what a block's branches add") {
  auto recipe = model_recipe("vit_small");
  recipe.options["layer_scale"] = 0.25;
  const auto model = make_model(recipe, 32, 1);
  const auto parameters = model->named_parameters();
  for (const char* const name : {"blocks.0.ls1.gamma", "blocks.1.ls2.gamma"}) {
    CAPTURE(name);
    CHECK(at::equal(parameters[name], at::full({384}, 0.25)));
  }
  const at::Tensor tokens = at::ones({1, 5, 384}).cumsum(1).cumsum(2).sin();
  const at::NoGradGuard no_grad;
  parameters["blocks.0.ls1.gamma"].zero_();
  parameters["blocks.0.ls2.gamma"].zero_();
  CHECK(at::equal(model->units()[1].run({tokens}, {})[0], tokens));
}

TEST_CASE("the class token is read where there is one, else the mean of all tokens") {
  const at::Tensor tokens = at::arange(5 * 384, at::kFloat).sin().view({1, 5, 384});
  at::Tensor changed = tokens.clone();
  changed[0][4].neg_();
  for (const char* const pool : {"token", "avg"}) {
    CAPTURE(pool);
    auto recipe = model_recipe("vit_small");
    recipe.options["pool"] = std::string(pool);
    const auto model = make_model(recipe, 32, 1);
    const auto head = model->units().back();
    CHECK(at::allclose(head.run({tokens}, {})[0], head.run({changed}, {})[0]) ==
          (pool == std::string("token")));
  }
}

TEST_CASE("class token and positions have no weight decay, as timm's") {
  const auto model = make_blank_model(model_recipe("vit_small"), 32);
  CHECK_FALSE(model->decays("cls_token"));
  CHECK_FALSE(model->decays("pos_embed"));
  CHECK(model->decays("head.weight"));
}

TEST_CASE("the last norm belongs to the last block, and to nothing else") {
  const auto layers = make_blank_model(model_recipe("vit_small"), 32)->layers();
  const auto has = [](const std::vector<std::string>& layer, const char* name) {
    return std::find(layer.begin(), layer.end(), name) != layer.end();
  };
  CHECK(has(layers[layers.size() - 2], "norm.weight"));
  CHECK_FALSE(has(layers.back(), "norm.weight"));
  CHECK(has(layers.back(), "head.weight"));
}

}  // namespace scaletrain::nn
