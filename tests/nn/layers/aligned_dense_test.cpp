#include "lib/nn/layers/aligned_dense.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <vector>

namespace scaletrain::nn {
namespace {

TEST_CASE("a product that is widened has the values and gradients of at::linear") {
  torch::manual_seed(3);
  for (const bool has_bias : {false, true}) {
    for (const std::int64_t outputs : {1, 63, 64, 257}) {
      CAPTURE(has_bias);
      CAPTURE(outputs);
      const auto drawn = [](at::IntArrayRef sizes) {
        return torch::randn(sizes, at::kDouble).requires_grad_(true);
      };
      std::vector<at::Tensor> leaves{drawn({2, 3, 5}), drawn({outputs, 5})};
      if (has_bias) leaves.push_back(drawn({outputs}));
      const at::Tensor bias = has_bias ? leaves[2] : at::Tensor();
      const at::Tensor ours = aligned_dense(leaves[0], leaves[1], bias);
      const at::Tensor peer = at::linear(leaves[0], leaves[1], bias);
      REQUIRE(ours.sizes() == peer.sizes());
      CHECK(ours.stride(1) % 64 == 0);
      CHECK(at::allclose(ours, peer, 1e-12, 1e-12));
      const at::Tensor upper = torch::randn(peer.sizes(), at::kDouble);
      const auto of_ours = torch::autograd::grad({ours}, leaves, {upper});
      const auto of_peer = torch::autograd::grad({peer}, leaves, {upper});
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        CHECK(at::allclose(of_ours[i], of_peer[i], 1e-12, 1e-12));
      }
    }
  }
}

TEST_CASE("nothing is widened on a CPU") {
  CHECK_FALSE(
      aligned_dense_takes(at::zeros({4, 8}, at::kBFloat16), at::zeros({2001, 8}, at::kBFloat16)));
}

}  // namespace
}  // namespace scaletrain::nn
