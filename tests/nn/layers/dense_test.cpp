#include "lib/nn/layers/dense.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "lib/core/cpu.h"

namespace scaletrain::nn {
namespace {

struct Given {
  at::Tensor input, weight, bias;
};

Given given(at::IntArrayRef input, std::int64_t out, bool has_bias) {
  torch::manual_seed(1);
  const std::int64_t in = input.back();
  return {.input = torch::randn(input).requires_grad_(true),
          .weight = (torch::randn({out, in}) / 16).requires_grad_(true),
          .bias = has_bias ? torch::randn({out}).requires_grad_(true) : at::Tensor()};
}

// What computed it, behind the view that gives it its shape.
std::string computed_by(const Given& given) {
  const at::Tensor output = dense(given.input, given.weight, given.bias);
  return output.grad_fn()->next_edge(0).function->name();
}

void check_as_linear(const Given& given, bool turned) {
  std::vector<at::Tensor> leaves{given.input, given.weight};
  if (given.bias.defined()) leaves.push_back(given.bias);
  const at::Tensor weight = turned ? given.weight.t().contiguous().t() : given.weight;
  const at::Tensor ours = dense(given.input, weight, given.bias);
  const at::Tensor peer = at::linear(given.input, given.weight, given.bias);
  CHECK(ours.sizes() == peer.sizes());
  CHECK(at::allclose(ours, peer, 1e-4, 1e-5));
  const at::Tensor upper = torch::randn(peer.sizes());
  const auto of_ours = torch::autograd::grad({ours}, leaves, {upper});
  const auto of_peer = torch::autograd::grad({peer}, leaves, {upper});
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    CAPTURE(i);
    CHECK(at::allclose(of_ours[i], of_peer[i], 1e-4, 1e-4));
  }
}

}  // namespace

TEST_CASE("dense is PyTorch's linear, large and small, with a weight that lies either way") {
  for (const bool turned : {false, true}) {
    for (const bool has_bias : {false, true}) {
      check_as_linear(given({2, 70, 128}, 160, has_bias), turned);
      check_as_linear(given({140, 128}, 160, has_bias), turned);
      check_as_linear(given({2, 3, 8}, 5, has_bias), turned);
    }
  }
}

TEST_CASE("large products on a CPU in fp32 are oneDNN's, others are as they were") {
  if (!core::has_avx2()) return;
  const std::string onednn = computed_by(given({140, 128}, 160, true));
  CHECK(onednn.find("Dense") != std::string::npos);
  for (const Given& other : {given({4, 4096}, 160, true), given({16, 64}, 64, true)}) {
    CHECK(computed_by(other).find("Dense") == std::string::npos);
    CHECK(dense(other.input, other.weight, other.bias).grad_fn()->name() == "SmallDense");
  }
}

TEST_CASE("dense_relu is dense and relu, large and small") {
  for (const Given& one : {given({140, 128}, 160, true), given({16, 64}, 64, true)}) {
    const at::Tensor ours = dense_relu(one.input, one.weight, one.bias);
    const at::Tensor peer = dense(one.input, one.weight, one.bias).relu();
    CHECK(at::equal(ours, peer));
    const at::Tensor upper = torch::randn(peer.sizes());
    const auto of_ours = torch::autograd::grad({ours}, {one.input, one.weight, one.bias}, {upper});
    const auto of_peer = torch::autograd::grad({peer}, {one.input, one.weight, one.bias}, {upper});
    for (std::size_t i = 0; i < of_ours.size(); ++i) CHECK(at::equal(of_ours[i], of_peer[i]));
  }
}

TEST_CASE("dense computes no gradient that nobody wants") {
  const Given one = given({140, 128}, 160, true);
  dense(one.input, one.weight.detach(), one.bias.detach()).sum().backward();
  CHECK(one.input.grad().defined());
  CHECK_FALSE(one.weight.grad().defined());
  const at::Tensor plain = dense(one.input.detach(), one.weight.detach(), one.bias.detach());
  CHECK_FALSE(plain.requires_grad());
}

}  // namespace scaletrain::nn
