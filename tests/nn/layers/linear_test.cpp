#include "lib/nn/layers/linear.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "tests/nn/layers/layer_support.h"

namespace scaletrain::nn {

TEST_CASE("Linear is PyTorch's, in values and gradients") {
  torch::manual_seed(1);
  Linear ours(6, 4);
  torch::nn::Linear peer(6, 4);
  copy_tensors(*peer, ours);
  const at::Tensor input = torch::randn({2, 3, 6});
  compare_layers([&](const at::Tensor& x) { return ours.forward(x); },
                 [&](const at::Tensor& x) { return peer->forward(x); }, input, ours, *peer);
}

TEST_CASE("Linear without a bias has one tensor") {
  const Linear layer({.in = 6, .out = 4, .bias = false});
  CHECK((layer.named_parameters().keys() == std::vector<std::string>{"weight"}));
  CHECK(layer.forward(torch::zeros({2, 6})).abs().sum().item<double>() == 0);
}

TEST_CASE(
    "inputs_first stores the weight the other way round, as GPT-2 does, and computes the same") {
  torch::manual_seed(1);
  Linear usual(6, 4), turned({.in = 6, .out = 4, .inputs_first = true});
  const auto from = usual.named_parameters(), into = turned.named_parameters();
  CHECK(into["weight"].sizes() == at::IntArrayRef({6, 4}));
  {
    const at::NoGradGuard no_grad;
    from["weight"].normal_();
    from["bias"].normal_();
    into["weight"].copy_(from["weight"].t());
    into["bias"].copy_(from["bias"]);
  }
  const at::Tensor input = torch::randn({5, 6});
  CHECK(at::allclose(turned.forward(input), usual.forward(input)));
  usual.forward(input).square().sum().backward();
  turned.forward(input).square().sum().backward();
  CHECK(at::allclose(into["weight"].grad().t(), from["weight"].grad(), 1e-5, 1e-5));
}

TEST_CASE("Linear multiplies by what it is given, with its weight as [out, in]") {
  for (const bool inputs_first : {false, true}) {
    Linear layer({.in = 6, .out = 4, .inputs_first = inputs_first});
    layer.multiply_by(
        [](const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
          CHECK(weight.sizes() == at::IntArrayRef({4, 6}));
          CHECK(bias.defined());
          return input.narrow(-1, 0, 4) + 1;
        });
    CHECK(at::equal(layer.forward(torch::zeros({2, 6})), torch::ones({2, 4})));
  }
}

TEST_CASE(
    "weight and bias of Linear start within 1 / sqrt(inputs), whichever way the weight lies") {
  for (const bool inputs_first : {false, true}) {
    const Linear layer({.in = 16, .out = 400, .inputs_first = inputs_first});
    for (const char* name : {"weight", "bias"}) {
      const at::Tensor drawn = at::empty(layer.named_parameters()[name].sizes());
      layer.initialise(name, drawn, at::detail::createCPUGenerator(3));
      CHECK(drawn.abs().max().item<double>() <= 0.25);  // 1 / sqrt(16)
      CHECK(drawn.abs().max().item<double>() > 0.24);
    }
  }
}

}  // namespace scaletrain::nn
