#include "lib/nn/layers/norm.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

#include <filesystem>
#include <vector>

#include "lib/dist/device.h"
#include "lib/nn/layers/image_norm.h"
#include "tests/nn/layers/layer_support.h"

namespace scaletrain::nn {
namespace {

// Away from one and zero, so that both count.
void draw_parameters(const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : module.parameters()) parameter.uniform_(0.5, 1.5);
}

struct Pass {
  at::Tensor output, gradient, weight_gradient;
};

Pass pass(BatchNorm& norm, const at::Tensor& values, const units::Context& context) {
  norm.zero_grad();
  const at::Tensor input = values.clone().requires_grad_(true);
  const at::Tensor output = norm.forward(input, context);
  (output * at::linspace(-1, 1, output.numel()).view_as(output)).sum().backward();
  return {output.detach(), input.grad(), norm.named_parameters()["weight"].grad().clone()};
}

}  // namespace

TEST_CASE("LayerNorm is PyTorch's, in values and gradients") {
  torch::manual_seed(1);
  torch::nn::LayerNorm peer(torch::nn::LayerNormOptions({6}).eps(1e-3));
  draw_parameters(*peer);
  LayerNorm ours(6, 1e-3);
  copy_tensors(*peer, ours);
  compare_layers([&](const at::Tensor& x) { return ours.forward(x); },
                 [&](const at::Tensor& x) { return peer->forward(x); }, torch::randn({2, 3, 6}),
                 ours, *peer);
}

TEST_CASE("a LayerNorm's sum is the sum, and its output the norm of that, bit for bit") {
  torch::manual_seed(6);
  LayerNorm norm(6, 1e-3);
  draw_parameters(norm);
  norm.cut_by({.after = [](const at::Tensor& output) { return output * 2; }});
  const at::Tensor input = torch::randn({2, 3, 6}), branch = torch::randn({2, 3, 6});
  const auto [sum, output] = norm.forward_sum(input, branch);
  CHECK(at::equal(sum, input + branch));
  CHECK(at::equal(output, norm.forward(input + branch)));
  const auto [alone, of_input] = norm.forward_sum(input);
  CHECK(alone.is_same(input));
  CHECK(at::equal(of_input, norm.forward(input)));
}

TEST_CASE("on a device under autocast a LayerNorm gives the type that its readers take" *
          doctest::skip(!std::filesystem::exists("/dev/nvidiactl"))) {
  const at::Device device = dist::choose_device("cuda", {.rank = 0, .ranks = 1});
  LayerNorm of_products(8, 1e-5), of_sums(8, 1e-5, LayerNorm::ReadBy::kSums), exchanged(8, 1e-5);
  exchanged.cut_by({.after = [](const at::Tensor& output) { return output; }});
  for (LayerNorm* norm : {&of_products, &of_sums, &exchanged}) norm->to(device);
  const at::Tensor stream = torch::randn({4, 8}).to(device), branch = stream.to(at::kBFloat16);
  CHECK((of_products.forward(stream).scalar_type() == at::kFloat));
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
  CHECK((of_products.forward(stream).scalar_type() == at::kBFloat16));
  CHECK((of_sums.forward(stream).scalar_type() == at::kFloat));
  CHECK((exchanged.forward(stream).scalar_type() == at::kFloat));
  const auto [sum, output] = of_products.forward_sum(stream, branch);
  CHECK((sum.scalar_type() == at::kFloat && output.scalar_type() == at::kBFloat16));
  at::autocast::set_autocast_enabled(at::kCUDA, false);
  of_products.to(at::kDouble);
  CHECK((of_products.forward(stream.to(at::kDouble)).scalar_type() == at::kDouble));
}

TEST_CASE("BatchNorm is PyTorch's in training and evaluation, buffers too") {
  torch::manual_seed(2);
  torch::nn::BatchNorm2d peer(4);
  draw_parameters(*peer);
  BatchNorm ours(4);
  copy_tensors(*peer, ours);
  for (const bool training : {true, true, false}) {
    ours.train(training);
    peer->train(training);
    ours.zero_grad();
    peer->zero_grad();
    compare_layers([&](const at::Tensor& x) { return ours.forward(x, {}); },
                   [&](const at::Tensor& x) { return peer->forward(x); },
                   torch::randn({3, 4, 5, 5}) + 2, ours, *peer);
  }
  CHECK(ours.named_buffers()["num_batches_tracked"].item<std::int64_t>() == 2);
}

TEST_CASE("BatchNorm that runs again gives the same and moves no statistics") {
  torch::manual_seed(3);
  BatchNorm norm(4);
  draw_parameters(norm);
  const at::Tensor input = torch::randn({3, 4, 5, 5}) + 2;
  const Pass first = pass(norm, input, {});
  std::vector<at::Tensor> before;
  for (const at::Tensor& buffer : norm.buffers()) before.push_back(buffer.clone());
  const Pass second = pass(norm, input, {.again = true});
  CHECK(at::equal(first.output, second.output));
  CHECK(at::equal(first.gradient, second.gradient));
  CHECK(at::equal(first.weight_gradient, second.weight_gradient));
  const std::vector<at::Tensor> after = norm.buffers();
  REQUIRE(after.size() == 3);
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(at::equal(before[i], after[i]));
}

TEST_CASE("a norm with a ReLU is the ReLU of its norm and the residual, with their gradients") {
  torch::manual_seed(4);
  for (const char* kind : {"batch", "sync_batch", "group"}) {
    CAPTURE(kind);
    for (const bool has_residual : {false, true}) {
      const at::Tensor values = torch::randn({3, 32, 5, 5}) + 2, other = torch::randn_like(values);
      std::vector<at::Tensor> outputs, gradients;
      for (const bool fused : {true, false}) {
        const auto norm = make_image_norm(kind, 32);
        const at::Tensor input = values.clone().requires_grad_(true);
        const at::Tensor residual = other.clone().requires_grad_(true);
        {
          const at::NoGradGuard no_grad;
          norm->named_parameters()["weight"].fill_(1.5);
          norm->named_parameters()["bias"].fill_(0.25);
        }
        const at::Tensor added = has_residual ? residual : at::Tensor();
        const at::Tensor output = fused          ? norm->forward_relu(input, {}, added)
                                  : has_residual ? (norm->forward(input, {}) + residual).relu()
                                                 : norm->forward(input, {}).relu();
        output.backward(at::linspace(-1, 1, output.numel()).view_as(output));
        outputs.push_back(output.detach());
        gradients.push_back(input.grad());
        gradients.push_back(norm->named_parameters()["weight"].grad());
        if (has_residual) gradients.push_back(residual.grad());
      }
      CHECK(at::equal(outputs[0], outputs[1]));
      const std::size_t each = gradients.size() / 2;
      for (std::size_t i = 0; i < each; ++i) CHECK(at::equal(gradients[i], gradients[each + i]));
    }
  }
}

TEST_CASE("a norm starts with weights of one and biases of zero") {
  const LayerNorm norm(3, 1e-5);
  const at::Tensor weight = at::empty({3}), bias = at::empty({3});
  norm.initialise("weight", weight, at::detail::createCPUGenerator(1));
  norm.initialise("bias", bias, at::detail::createCPUGenerator(1));
  CHECK(at::equal(weight, at::ones({3})));
  CHECK(at::equal(bias, at::zeros({3})));
}

TEST_CASE("a BatchNorm whose weight is frozen stays in evaluation mode") {
  torch::manual_seed(5);
  BatchNorm norm(3);
  const at::NoGradGuard no_grad;
  norm.named_parameters()["weight"].fill_(1).set_requires_grad(false);
  norm.named_parameters()["bias"].zero_();
  const at::Tensor input = torch::randn({2, 3, 4, 4}) + 5;
  norm.train();
  CHECK_FALSE(norm.is_training());
  CHECK((at::allclose(norm.forward(input, {}), input, 1e-4, 1e-4)));
  CHECK((norm.named_buffers()["running_mean"].eq(0).all().item<bool>()));
  CHECK((norm.named_buffers()["num_batches_tracked"].eq(0).all().item<bool>()));
  norm.named_parameters()["weight"].set_requires_grad(true);
  norm.train();
  norm.forward(input, {});
  CHECK((norm.named_buffers()["running_mean"].gt(0.1).all().item<bool>()));
  norm.eval();
  CHECK_FALSE(norm.is_training());
}

}  // namespace scaletrain::nn
