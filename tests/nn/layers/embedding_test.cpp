#include "lib/nn/layers/embedding.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/utils.h>

#include "tests/nn/layers/layer_support.h"

namespace scaletrain::nn {

TEST_CASE("Embedding is PyTorch's, in values and gradients") {
  torch::manual_seed(1);
  torch::nn::Embedding peer(7, 4);
  Embedding ours(7, 4);
  copy_tensors(*peer, ours);
  const at::Tensor ids = at::tensor({3, 0, 3, 6}, at::kLong).view({2, 2});
  compare_layers([&](const at::Tensor& x) { return ours.forward(x); },
                 [&](const at::Tensor& x) { return peer->forward(x); }, ids, ours, *peer);
}

TEST_CASE("scores are products with every row, and rows() are those of the table") {
  torch::manual_seed(2);
  const Embedding table(7, 4);
  const at::Tensor weight = table.named_parameters()["weight"];
  {
    const at::NoGradGuard no_grad;
    weight.normal_();
  }
  const at::Tensor input = torch::randn({2, 3, 4});
  CHECK(at::allclose(table.scores(input), at::matmul(input, weight.t())));
  CHECK(at::equal(table.rows(3, 2), weight.slice(0, 3, 5)));
}

TEST_CASE("an embedding starts as a standard normal") {
  const Embedding table(1000, 16);
  const at::Tensor drawn = at::empty({1000, 16});
  table.initialise("weight", drawn, at::detail::createCPUGenerator(3));
  CHECK(drawn.std().item<double>() == doctest::Approx(1).epsilon(0.02));
  CHECK(drawn.mean().item<double>() == doctest::Approx(0).epsilon(0.02));
}

}  // namespace scaletrain::nn
