#include "lib/nn/layers/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include <vector>

namespace scaletrain::nn {

TEST_CASE("RmsNorm is x / sqrt(mean(x^2) + eps) * weight, in values and gradients") {
  torch::manual_seed(1);
  // Less than a vector, and more; more rows than a thread's share.
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{2, 3, 6}, {2, 3, 19}, {1, 5000, 8}}) {
    const std::int64_t channels = shape.back();
    CAPTURE(channels);
    RmsNorm norm(channels, 1e-2);
    const at::Tensor weight = norm.named_parameters()["weight"];
    {
      const at::NoGradGuard no_grad;
      weight.uniform_(0.5, 1.5);
    }
    const at::Tensor ours = torch::randn(shape).requires_grad_(true);
    const at::Tensor peers = ours.detach().to(at::kDouble).requires_grad_(true);
    const at::Tensor factor = weight.detach().to(at::kDouble).requires_grad_(true);
    const at::Tensor output = norm.forward(ours);
    const at::Tensor expected =
        peers / (peers.square().mean(-1, /*keepdim=*/true) + 1e-2).sqrt() * factor;
    CHECK(at::allclose(output.to(at::kDouble), expected, 1e-5, 1e-6));
    const at::Tensor shares = at::linspace(-1, 1, output.numel()).view_as(output);
    (output * shares).sum().backward();
    (expected * shares).sum().backward();
    CHECK(at::allclose(ours.grad().to(at::kDouble), peers.grad(), 1e-4, 1e-6));
    CHECK(at::allclose(weight.grad().to(at::kDouble), factor.grad(), 1e-4, 1e-4));
  }
}

TEST_CASE("what is in fp32 has the same bits where autocast asks for bf16") {
  torch::manual_seed(2);
  const RmsNorm norm(19, 1e-5);
  {
    const at::NoGradGuard no_grad;
    norm.named_parameters()["weight"].uniform_(0.5, 1.5);
  }
  const at::Tensor input = torch::randn({3, 19}), expected = norm.forward(input);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const at::Tensor output = norm.forward(input);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  CHECK(at::equal(output, expected));
}

TEST_CASE("RmsNorm of doubles, and of rows that do not lie side by side, is the same") {
  torch::manual_seed(2);
  RmsNorm norm(6, 1e-2);
  norm.named_parameters()["weight"].detach().uniform_(0.5, 1.5);
  const at::Tensor input = torch::randn({6, 5}).t();
  CHECK(at::allclose(norm.forward(input), norm.forward(input.contiguous()), 1e-5, 1e-6));
  norm.to(at::kDouble);
  const at::Tensor doubles = torch::randn({3, 6}, at::kDouble);
  const at::Tensor expected = doubles /
                              (doubles.square().mean(-1, /*keepdim=*/true) + 1e-2).sqrt() *
                              norm.named_parameters()["weight"];
  CHECK(at::allclose(norm.forward(doubles), expected, 1e-12, 1e-12));
}

TEST_CASE("RmsNorm starts with weights of one, and has no bias") {
  const RmsNorm norm(3, 1e-5);
  CHECK(norm.named_parameters().size() == 1);
  const at::Tensor weight = at::empty({3});
  norm.initialise("weight", weight, at::detail::createCPUGenerator(1));
  CHECK(at::equal(weight, at::ones({3})));
}

}  // namespace scaletrain::nn
