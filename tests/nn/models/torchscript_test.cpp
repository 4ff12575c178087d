#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/script.h>

#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/nn/model.h"
#include "tests/temporary_folder.h"

namespace scaletrain::nn {
namespace {

constexpr const char* kForward = R"(
    def forward(self, x):
        if self.training:
            self.passes.add_(1)
        return torch.linear(x.flatten(1), self.weight, self.bias)
)";

// What torch.jit.script writes of a linear layer over [batch, 3, 2, 2] that counts its passes. The
// bias stands in a module of its own.
torch::jit::Module linear_script(const char* forward) {
  torch::manual_seed(1);
  torch::jit::Module script("Linear");
  script.register_parameter("weight", torch::randn({10, 12}).requires_grad_(true), false);
  script.register_parameter("bias", torch::randn({10}).requires_grad_(true), false);
  script.register_buffer("passes", torch::zeros({}));
  script.register_attribute("training", c10::BoolType::get(), true);
  script.define(forward);
  return script;
}

std::shared_ptr<Model> load(const std::string& file) {
  recipe::Model recipe;
  recipe.name = "torchscript";
  recipe.num_classes = 10;
  recipe.options = {{"file", file}};
  return make_model(recipe, 2, 1);
}

std::string error_of(const torch::jit::Module& script, const test::TemporaryFolder& folder) {
  const std::string file = folder.path / "model.pt";
  script.save(file);
  try {
    load(file);
  } catch (const core::DataError& error) {
    return error.found();
  }
  return "";
}

}  // namespace

TEST_CASE("a TorchScript model has its own tensors and values, and its gradients") {
  const test::TemporaryFolder folder;
  const torch::jit::Module script = linear_script(kForward);
  const std::string file = folder.path / "model.pt";
  script.save(file);
  const auto model = load(file);
  CHECK((model->named_parameters().keys() == std::vector<std::string>{"weight", "bias"}));
  CHECK((model->named_buffers().keys() == std::vector<std::string>{"passes"}));
  const at::Tensor weight = script.attr("weight").toTensor(), bias = script.attr("bias").toTensor();
  CHECK(at::equal(model->named_parameters()["weight"], weight));

  const at::Tensor input = torch::randn({4, 3, 2, 2});
  const at::Tensor output = model->forward(input);
  CHECK(at::allclose(output, at::linear(input.flatten(1), weight, bias)));
  output.square().sum().backward();
  at::linear(input.flatten(1), weight, bias).square().sum().backward();
  CHECK(at::allclose(model->named_parameters()["weight"].grad(), weight.grad()));
  CHECK(at::allclose(model->named_parameters()["bias"].grad(), bias.grad()));
}

TEST_CASE("training and evaluation reach the script, and its unit names all tensors") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path / "model.pt";
  linear_script(kForward).save(file);
  const auto model = load(file);
  const at::Tensor passes = model->named_buffers()["passes"];
  CHECK(passes.item<float>() == 0);  // the look at its shapes was no training
  model->forward(torch::zeros({1, 3, 2, 2}));
  CHECK(passes.item<float>() == 1);
  model->eval();
  model->forward(torch::zeros({1, 3, 2, 2}));
  CHECK(passes.item<float>() == 1);
  const auto units = model->units();
  REQUIRE(units.size() == 1);
  recipe::Model recipe;
  recipe.name = "torchscript";
  CHECK(recipe::units_of(recipe) == 1);
  CHECK((units[0].tensors == std::vector<std::string>{"weight", "bias", "passes"}));
}

TEST_CASE("an update of a parameter is what the script computes with next") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path / "model.pt";
  linear_script(kForward).save(file);
  const auto model = load(file);
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model->parameters()) parameter.fill_(1);
  CHECK(at::equal(model->forward(torch::ones({1, 3, 2, 2})), at::full({1, 10}, 13)));  // 12 + 1
  model->to(at::kDouble);
  CHECK((model->forward(torch::ones({1, 3, 2, 2}, at::kDouble)).scalar_type() == at::kDouble));
}

TEST_CASE("the first and all later passes have the same gradients, bit for bit") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path / "model.pt";
  linear_script(R"(
    def forward(self, x):
        h = torch.linear(x.flatten(1), self.weight, self.bias)
        return torch.tanh(h * torch.sigmoid(h) + h.exp())
)")
      .save(file);
  const auto model = load(file);
  const at::Tensor input = torch::randn({4, 3, 2, 2}) / 4, weight = model->parameters()[0];
  at::Tensor first;
  for (int pass = 0; pass < 4; ++pass) {
    model->zero_grad();
    model->forward(input).square().sum().backward();
    if (!first.defined()) first = weight.grad().clone();
    CHECK(at::equal(weight.grad(), first));
  }
}

TEST_CASE("parameters in modules keep their paths; frozen ones are buffers") {
  const test::TemporaryFolder folder;
  torch::jit::Module outer("Outer");
  torch::jit::Module inner = linear_script(kForward);
  inner.attr("bias").toTensor().requires_grad_(false);
  outer.register_module("layer", inner);
  outer.register_attribute("training", c10::BoolType::get(), true);
  outer.define("def forward(self, x):\n    return self.layer.forward(x)\n");
  const std::string file = folder.path / "model.pt";
  outer.save(file);
  const auto model = load(file);
  CHECK((model->named_parameters().keys() == std::vector<std::string>{"layer.weight"}));
  CHECK((model->named_buffers().keys() == std::vector<std::string>{"layer.bias", "layer.passes"}));
}

TEST_CASE("what cannot be trained is refused with its reason") {
  const test::TemporaryFolder folder;
  const std::string fixed = R"(
    def forward(self, x):
        return torch.linear(x.view(2, 12), self.weight, self.bias)
)";
  CHECK(error_of(linear_script(fixed.c_str()), folder) ==
        "for images [3, 3, 2, 2] logits [3, 10] are expected, and forward failed: shape '[2, 12]' "
        "is invalid for input of size 36");
  const std::string narrow = R"(
    def forward(self, x):
        return torch.linear(x.flatten(1), self.weight, self.bias).narrow(1, 0, 4)
)";
  CHECK(error_of(linear_script(narrow.c_str()), folder) ==
        "for images [2, 3, 2, 2] logits [2, 10] are expected, and the output is [2, 4]");
  torch::jit::Module empty("Empty");
  empty.register_attribute("training", c10::BoolType::get(), true);
  empty.define("def forward(self, x):\n    return x.flatten(1)\n");
  CHECK(error_of(empty, folder) == "has no parameters to train");

  torch::jit::Module tied = linear_script(kForward);
  tied.register_parameter("again", tied.attr("weight").toTensor(), false);
  CHECK(error_of(tied, folder) == "weight and again are one tensor");

  const std::string text = folder.write("text.pt", "import torch");
  CHECK_THROWS_AS(load(text), core::DataError);
}

TEST_CASE("a script in bf16 is trained in fp32; its counters stay whole numbers") {
  const test::TemporaryFolder folder;
  torch::jit::Module script("Linear");
  script.register_parameter("weight", torch::randn({10, 12}).to(at::kBFloat16).requires_grad_(true),
                            false);
  script.register_buffer("scale", torch::ones({}).to(at::kHalf));
  script.register_buffer("passes", torch::zeros({}, at::kLong));
  script.register_attribute("training", c10::BoolType::get(), true);
  script.define(R"(
    def forward(self, x):
        return torch.linear(x.flatten(1), self.weight) * self.scale
)");
  script.save(folder.path / "model.pt");
  const auto model = load(folder.path / "model.pt");
  CHECK((model->named_parameters()["weight"].scalar_type() == at::kFloat));
  CHECK((model->named_buffers()["scale"].scalar_type() == at::kFloat));
  CHECK((model->named_buffers()["passes"].scalar_type() == at::kLong));
  CHECK((model->forward(torch::ones({1, 3, 2, 2})).scalar_type() == at::kFloat));
}

TEST_CASE("a TorchScript model itself knows whether it trains") {
  const test::TemporaryFolder folder;
  linear_script(kForward).save(folder.path / "model.pt");
  const auto model = load(folder.path / "model.pt");
  model->eval();
  CHECK_FALSE(model->is_training());
  model->train();
  CHECK(model->is_training());
}

}  // namespace scaletrain::nn
