#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>

#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {
TEST_CASE("zero_init_residual starts the last norm of every block at zero, and no other") {
  auto recipe = model_recipe("resnet50");
  recipe.options["zero_init_residual"] = true;
  const auto model = make_model(recipe, 32, 1);
  for (const auto& parameter : model->named_parameters()) {
    const std::string& name = parameter.key();
    if (!name.ends_with("bn1.weight") && !name.ends_with("bn2.weight") &&
        !name.ends_with("bn3.weight") && !name.ends_with("downsample.1.weight")) {
      continue;
    }
    CAPTURE(name);
    const double expected = name.ends_with("bn3.weight") ? 0 : 1;
    CHECK(at::equal(parameter.value(), at::full_like(parameter.value(), expected)));
  }
}

TEST_CASE("a ResNet in training moves the running statistics and counts batches") {
  const auto model = make_model(model_recipe("resnet18"), 32, 1);
  const auto buffers = model->named_buffers();
  const at::Tensor mean_before = buffers["bn1.running_mean"].clone();
  model->forward(torch::randn({4, 3, 32, 32}));
  CHECK(buffers["layer4.1.bn2.num_batches_tracked"].item<std::int64_t>() == 1);
  CHECK_FALSE(at::equal(buffers["bn1.running_mean"], mean_before));
  model->eval();
  model->forward(torch::randn({4, 3, 32, 32}));
  CHECK(buffers["layer4.1.bn2.num_batches_tracked"].item<std::int64_t>() == 1);
}

TEST_CASE("with GroupNorm a sample's logits depend on no other sample, in training too") {
  for (const char* name : {"resnet18", "mobilenet_v3_small"}) {
    CAPTURE(name);
    auto recipe = model_recipe(name);
    recipe.options["norm"] = std::string("group");
    if (recipe.options.contains("dropout")) recipe.options["dropout"] = 0.0;
    const auto model = make_model(recipe, 32, 1);
    CHECK(model->buffers().empty());
    torch::manual_seed(3);
    const at::Tensor images = torch::randn({4, 3, 32, 32});
    const at::Tensor together = model->forward(images);
    const at::Tensor alone = model->forward(images.narrow(0, 1, 1));
    CHECK(at::allclose(together.narrow(0, 1, 1), alone, 1e-4, 1e-5));
  }
}

}  // namespace scaletrain::nn
