#include "lib/nn/layers/conv2d.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

namespace scaletrain::nn {
namespace {

// A convolution with a weight that was drawn, in the type `type`.
Conv2d make_conv(const Conv2d::Options& options, at::ScalarType type = at::kFloat) {
  Conv2d conv(options);
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : conv.parameters()) parameter.normal_(0, 0.1);
  conv.to(type);
  return conv;
}

struct Result {
  at::Tensor output, input_gradient, weight_gradient;
};

// Output, and the gradients of sum(output * weights) for fixed weights, so that every output counts
// differently.
template <class Forward>
Result run(const at::Tensor& input_values, const at::Tensor& weight, const Forward& forward) {
  const at::Tensor input = input_values.clone().requires_grad_(true);
  const at::Tensor output = forward(input);
  at::Tensor coefficients =
      at::linspace(-1, 1, output.numel(), weight.options().requires_grad(false));
  const auto gradients = torch::autograd::grad(
      {(output.to(weight.scalar_type()) * coefficients.view_as(output)).sum()}, {input, weight});
  return {output.detach(), gradients[0], gradients[1]};
}

// Largest difference over the largest absolute value expected.
double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  REQUIRE(actual.sizes() == expected.sizes());
  const at::Tensor wide = expected.to(at::kDouble);
  return ((actual.to(at::kDouble) - wide).abs().max() / wide.abs().max()).item<double>();
}

void compare(const Conv2d::Options& options, std::int64_t height, std::int64_t width) {
  CAPTURE(options.kernel);
  CAPTURE(options.stride);
  CAPTURE(options.padding);
  CAPTURE(height);
  CAPTURE(width);
  Conv2d conv = make_conv(options, at::kDouble);
  const at::Tensor weight = conv.named_parameters()["weight"];
  const at::Tensor input = at::randn({2, options.in, height, width}, at::kDouble);
  const Result ours = run(input, weight, [&](const at::Tensor& x) { return conv.forward(x); });
  const Result reference = run(input, weight, [&](const at::Tensor& x) {
    return at::conv2d(x, weight, {}, options.stride, options.padding, 1, options.groups);
  });
  CHECK(relative_error(ours.output, reference.output) < 1e-12);
  CHECK(relative_error(ours.input_gradient, reference.input_gradient) < 1e-12);
  CHECK(relative_error(ours.weight_gradient, reference.weight_gradient) < 1e-12);
}

}  // namespace

TEST_CASE("Conv2d equals conv2d for every kernel, stride and map size around the padding") {
  torch::manual_seed(3);
  for (const std::int64_t size : {1, 2, 3, 4, 5, 7, 12}) {
    for (const std::int64_t stride : {1, 2}) {
      compare({3, 4, 1, stride, 0}, size, size);
      compare({3, 4, 3, stride, 1}, size, size);
      compare({3, 4, 7, stride, 3}, size, size);
    }
  }
}

TEST_CASE("Conv2d equals conv2d in groups, down to one of each channel") {
  torch::manual_seed(9);
  for (const std::int64_t size : {1, 2, 5, 9}) {
    for (const std::int64_t groups : {2, 8}) {
      compare({.in = 8, .out = 8, .kernel = 3, .stride = 2, .padding = 1, .groups = groups}, size,
              size);
      compare({.in = 8, .out = 8, .kernel = 7, .padding = 3, .groups = groups}, size, size);
      compare({.in = 8, .out = 8, .kernel = 5, .stride = 2, .padding = 2, .groups = groups}, size,
              size + 1);
      compare({.in = 8, .out = 8, .kernel = 5, .stride = 3, .padding = 4, .groups = groups}, size,
              size);
    }
  }
}

TEST_CASE("Conv2d in groups has a bias like conv2d's") {
  torch::manual_seed(10);
  const Conv2d conv = make_conv(
      {.in = 4, .out = 4, .kernel = 7, .padding = 3, .bias = true, .groups = 4}, at::kDouble);
  const auto tensors = conv.named_parameters();
  const at::Tensor input = torch::randn({2, 4, 3, 3}, at::kDouble);
  const at::Tensor factors = torch::randn({2, 4, 3, 3}, at::kDouble);
  const at::Tensor ours = conv.forward(input);
  const at::Tensor peers = at::conv2d(input, tensors["weight"], tensors["bias"], 1, 3, 1, 4);
  CHECK(at::allclose(ours, peers, 1e-12, 1e-12));
  const auto gradient = [&](const at::Tensor& output) {
    return torch::autograd::grad({(output * factors).sum()}, {tensors["bias"]})[0];
  };
  CHECK(at::allclose(gradient(ours), gradient(peers), 1e-12, 1e-12));
}

TEST_CASE("Conv2d equals conv2d on maps that are not square and with padding wider than needed") {
  torch::manual_seed(4);
  compare({3, 4, 3, 1, 1}, 1, 5);
  compare({3, 4, 3, 2, 1}, 4, 1);
  compare({3, 4, 3, 1, 3}, 2, 2);
  compare({3, 4, 5, 3, 2}, 2, 9);
}

TEST_CASE("taps that meet only padding have the gradient zero") {
  torch::manual_seed(5);
  Conv2d conv = make_conv({2, 2, 3, 1, 1});
  const at::Tensor weight = conv.named_parameters()["weight"];
  conv.forward(torch::ones({1, 2, 1, 1})).sum().backward();
  at::Tensor expected = torch::zeros({2, 2, 3, 3});
  expected.select(3, 1).select(2, 1).fill_(1);  // each centre meets one input of 1
  CHECK(at::equal(weight.grad(), expected));
}

TEST_CASE("the weight's gradient has the weight's layout, so that nothing copies it again") {
  torch::manual_seed(6);
  for (const std::int64_t kernel : {1, 3}) {
    for (const std::int64_t size : {1, 2, 8}) {
      CAPTURE(kernel);
      CAPTURE(size);
      Conv2d conv = make_conv({4, 6, kernel, 1, kernel / 2});
      const at::Tensor weight = conv.named_parameters()["weight"];
      conv.forward(torch::randn({2, 4, size, size})).sum().backward();
      CHECK(weight.is_contiguous(at::MemoryFormat::ChannelsLast));
      CHECK(weight.grad().strides() == weight.strides());
    }
  }
}

TEST_CASE("with a bias Conv2d is conv2d") {
  torch::manual_seed(8);
  const Conv2d conv = make_conv({.in = 3, .out = 4, .kernel = 4, .stride = 4, .bias = true});
  const auto tensors = conv.named_parameters();
  const at::Tensor input = torch::randn({2, 3, 8, 8});
  CHECK(at::equal(conv.forward(input), at::conv2d(input, tensors["weight"], tensors["bias"], 4)));
  CHECK(tensors["bias"].sizes() == at::IntArrayRef({4}));
}

TEST_CASE("Conv2d starts uniform within 1 / sqrt(the inputs of an output)") {
  const Conv2d conv({.in = 4, .out = 8, .kernel = 3, .groups = 2});
  const at::Tensor drawn = at::empty({8, 2, 3, 3});
  conv.initialise("weight", drawn, at::detail::createCPUGenerator(3));
  const double bound = 1 / std::sqrt(2 * 3 * 3);
  CHECK(at::equal(
      drawn, at::empty({8, 2, 3, 3}).uniform_(-bound, bound, at::detail::createCPUGenerator(3))));
}

TEST_CASE("under autocast Conv2d computes in bf16 and gives fp32 gradients to the weight") {
  torch::manual_seed(7);
  for (const std::int64_t size : {1, 2, 8}) {
    CAPTURE(size);
    Conv2d conv = make_conv({16, 16, 3, 1, 1});
    const at::Tensor weight = conv.named_parameters()["weight"];
    const at::Tensor input = at::randn({4, 16, size, size});
    const Result reference =
        run(input, weight, [&](const at::Tensor& x) { return conv.forward(x); });
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const Result ours = run(input, weight, [&](const at::Tensor& x) { return conv.forward(x); });
    at::autocast::set_autocast_enabled(at::kCPU, false);
    CHECK((ours.output.scalar_type() == at::kBFloat16));
    CHECK((ours.input_gradient.scalar_type() == at::kFloat));
    CHECK((ours.weight_gradient.scalar_type() == at::kFloat));
    // bf16 keeps 8 bits: each rounding is at most 2^-9 = 0.002 of its value; a few add up, and
    // more where the processor has no bf16 products (0.0112 was seen).
    CHECK(relative_error(ours.output, reference.output) < 0.02);
    CHECK(relative_error(ours.input_gradient, reference.input_gradient) < 0.02);
    CHECK(relative_error(ours.weight_gradient, reference.weight_gradient) < 0.02);
  }
}

}  // namespace scaletrain::nn
