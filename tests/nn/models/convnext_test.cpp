#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {

TEST_CASE("the maps of a ConvNeXt are channels last in memory from the stem to the head") {
  const auto model = make_model(model_recipe("convnext_tiny"), 64, 1);
  units::Flow flow = {torch::randn({2, 3, 64, 64})};
  const auto units = model->units();
  for (std::size_t i = 0; i + 1 < units.size(); ++i) {
    flow = units[i].run(flow, {});
    CAPTURE(units[i].name);
    CHECK(flow[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  }
  CHECK(flow[0].sizes() == at::IntArrayRef({2, 768, 2, 2}));  // 64 / (4 * 8)
}

TEST_CASE("a smaller patch gives a ConvNeXt larger maps") {
  auto recipe = model_recipe("convnext_tiny");
  recipe.options["patch_size"] = std::int64_t{1};
  const auto model = make_model(recipe, 16, 1);
  CHECK(model->units()[0].run({torch::zeros({1, 3, 16, 16})}, {})[0].sizes() ==
        at::IntArrayRef({1, 96, 16, 16}));
}

TEST_CASE("layer_scale is where the factors of a ConvNeXt start; with 0 it has none") {
  auto recipe = model_recipe("convnext_tiny");
  recipe.options["layer_scale"] = 0.5;
  const auto gamma = make_model(recipe, 32, 1)->named_parameters()["stages.2.blocks.8.gamma"];
  CHECK(at::equal(gamma, at::full({384}, 0.5)));
  recipe.options["layer_scale"] = 0.0;
  const auto without = make_blank_model(recipe, 32)->named_parameters();
  CHECK_FALSE(without.contains("stages.2.blocks.8.gamma"));
}

TEST_CASE("a ConvNeXt starts with deviations of 0.02, biases of 0 and norms of 1") {
  const auto parameters = make_model(model_recipe("convnext_tiny"), 32, 1)->named_parameters();
  const auto deviation = [&](const char* name) { return parameters[name].std().item<double>(); };
  CHECK(deviation("stages.2.blocks.1.mlp.fc1.weight") ==
        doctest::Approx(0.02).scale(0).epsilon(0.03));
  CHECK(deviation("stages.1.blocks.0.conv_dw.weight") ==
        doctest::Approx(0.02).scale(0).epsilon(0.05));
  CHECK(parameters["stages.2.blocks.1.mlp.fc1.bias"].abs().max().item<double>() == 0);
  CHECK(parameters["stem.0.bias"].abs().max().item<double>() == 0);
  CHECK(at::equal(parameters["head.norm.weight"], at::ones({768})));
}

TEST_CASE("the blocks of a ConvNeXt are dropped at rates from 0 to drop_path") {
  auto recipe = model_recipe("convnext_tiny");
  recipe.options["drop_path"] = 0.99;
  recipe.options["layer_scale"] = 1.0;
  const auto model = make_model(recipe, 32, 1);
  const auto units = model->units();
  torch::manual_seed(3);
  const auto left_out = [&](std::size_t unit, std::int64_t channels) {
    const at::Tensor input = torch::randn({16, channels, 4, 4});
    const at::Tensor output = units[unit].run({input.clone()}, {})[0];
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < 16; ++i) count += at::equal(output[i], input[i]) ? 1 : 0;
    return count;
  };
  CHECK(units[1].name == "stages.0.blocks.0");
  CHECK(left_out(1, 96) == 0);
  CHECK(left_out(units.size() - 2, 768) > 12);  // 0.99 of 16
}

}  // namespace scaletrain::nn
