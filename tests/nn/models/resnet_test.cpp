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

TEST_CASE("the deep stem is three convolutions of 3x3 with norms and ReLUs between, as timm's") {
  auto recipe = model_recipe("resnet18");
  recipe.options["stem"] = std::string("d");
  const auto model = make_model(recipe, 32, 1);
  const auto parameters = model->named_parameters();
  CHECK(parameters["conv1.0.weight"].sizes() == at::IntArrayRef({32, 3, 3, 3}));
  CHECK(parameters["conv1.1.weight"].sizes() == at::IntArrayRef({32}));
  CHECK(parameters["conv1.3.weight"].sizes() == at::IntArrayRef({32, 32, 3, 3}));
  CHECK(parameters["conv1.4.bias"].sizes() == at::IntArrayRef({32}));
  CHECK(parameters["conv1.6.weight"].sizes() == at::IntArrayRef({64, 32, 3, 3}));
  CHECK_FALSE(parameters.contains("conv1.7.weight"));

  model->eval();
  const auto norm = [&](const at::Tensor& input, const std::string& name) {
    const auto buffers = model->named_buffers();
    return at::batch_norm(input, parameters[name + ".weight"], parameters[name + ".bias"],
                          buffers[name + ".running_mean"], buffers[name + ".running_var"], false, 0,
                          1e-5, false);
  };
  torch::manual_seed(3);
  const at::Tensor image = torch::randn({2, 3, 32, 32});
  at::Tensor expected = at::conv2d(image, parameters["conv1.0.weight"], {}, 2, 1);
  expected = norm(expected, "conv1.1").relu();
  expected = at::conv2d(expected, parameters["conv1.3.weight"], {}, 1, 1);
  expected = norm(expected, "conv1.4").relu();
  expected = norm(at::conv2d(expected, parameters["conv1.6.weight"], {}, 1, 1), "bn1").relu();
  expected = at::max_pool2d(expected, {3, 3}, {2, 2}, {1, 1});
  CHECK(at::allclose(model->units().front().run({image}, {})[0], expected, 1e-4, 1e-5));
}

TEST_CASE("a basic block is two convolutions with norms, a ReLU between them and one at the end") {
  const auto model = make_model(model_recipe("resnet18"), 32, 1);
  model->eval();
  const auto parameters = model->named_parameters();
  const auto buffers = model->named_buffers();
  torch::manual_seed(3);
  const at::Tensor input = torch::randn({2, 64, 8, 8}).relu();
  at::Tensor expected = input;
  for (const char* const number : {"1", "2"}) {
    const std::string conv = std::string("layer1.0.conv") + number + ".weight";
    const std::string norm = std::string("layer1.0.bn") + number;
    if (number == std::string("2")) expected = expected.relu();
    expected = at::batch_norm(at::conv2d(expected, parameters[conv], {}, 1, 1),
                              parameters[norm + ".weight"], parameters[norm + ".bias"],
                              buffers[norm + ".running_mean"], buffers[norm + ".running_var"],
                              false, 0, 1e-5, false);
  }
  const at::Tensor given = input.clone();  // a block may change what it is given
  CHECK(at::allclose(model->units()[1].run({given}, {})[0], (expected + input).relu(), 1e-4, 1e-5));
}

}  // namespace scaletrain::nn
