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

TEST_CASE("a gradient whose rows have room for the zeros is widened where it lies") {
  torch::manual_seed(4);
  const std::vector<at::Tensor> leaves{torch::randn({2, 3, 5}).requires_grad_(true),
                                       torch::randn({70, 5}).requires_grad_(true)};
  const at::Tensor whole = torch::randn({2, 3, 128});
  const at::Tensor upper = whole.narrow(-1, 0, 70);
  const auto expected = torch::autograd::grad({at::linear(leaves[0], leaves[1])}, leaves, {upper});
  const auto found =
      torch::autograd::grad({aligned_dense(leaves[0], leaves[1], {})}, leaves, {upper});
  for (std::size_t i = 0; i < leaves.size(); ++i) CHECK(at::allclose(found[i], expected[i]));
  CHECK(whole.narrow(-1, 70, 58).abs().sum().item<float>() == 0);

  // Here something else lies between the rows.
  const at::Tensor columns = torch::randn({2, 3, 129});
  const at::Tensor before = columns.clone();
  torch::autograd::grad({aligned_dense(leaves[0], leaves[1], {})}, leaves,
                        {columns.narrow(-1, 0, 70)});
  CHECK(at::equal(columns, before));
}

TEST_CASE("nothing is widened on a CPU") {
  CHECK_FALSE(
      aligned_dense_takes(at::zeros({4, 8}, at::kBFloat16), at::zeros({2001, 8}, at::kBFloat16)));
}

}  // namespace
}  // namespace scaletrain::nn
