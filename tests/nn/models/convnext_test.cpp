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

}  // namespace scaletrain::nn
