#include "lib/nn/layers/small_dense.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <limits>
#include <vector>

#include "lib/core/cpu.h"

namespace scaletrain::nn {
namespace {

at::Tensor drawn(at::IntArrayRef sizes) { return torch::randn(sizes).requires_grad_(true); }

// Requires the bits of ATen's layers, forward and backward.
void check_as_aten(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                   bool relu) {
  REQUIRE(small_dense_takes(input, weight, bias));
  const at::Tensor ours = small_dense(input, weight, bias, relu);
  const at::Tensor sums = at::linear(input, weight, bias);
  const at::Tensor peer = relu ? sums.relu() : sums;
  CHECK(at::equal(ours, peer));
  std::vector<at::Tensor> leaves{input, weight};
  if (bias.defined()) leaves.push_back(bias);
  const at::Tensor upper = torch::randn(peer.sizes());
  const auto of_ours = torch::autograd::grad({ours}, leaves, {upper});
  const auto of_peer = torch::autograd::grad({peer}, leaves, {upper});
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    CAPTURE(i);
    CHECK(of_ours[i].sizes() == of_peer[i].sizes());
    CHECK(at::equal(of_ours[i], of_peer[i]));
    CHECK(of_ours[i].is_contiguous());
  }
}

TEST_CASE("small_dense has the bits of ATen's linear and relu") {
  if (!core::has_avx2()) return;
  torch::manual_seed(3);
  for (const bool relu : {false, true}) {
    for (const bool has_bias : {false, true}) {
      for (const std::int64_t rows : {2, 3, 8, 33, 128}) {
        for (const auto& [in, out] : {std::pair{64, 64}, {192, 64}, {64, 10}, {5, 3}, {2, 2}}) {
          CAPTURE(rows);
          CAPTURE(in);
          CAPTURE(out);
          const at::Tensor bias = has_bias ? drawn({out}) : at::Tensor();
          check_as_aten(drawn({rows, in}), drawn({out, in}), bias, relu);
          check_as_aten(drawn({2, rows, in}), drawn({out, in}), bias, relu);
        }
      }
    }
  }
  check_as_aten(drawn({2, 3, 4, 8}), drawn({6, 8}), at::Tensor(), true);
}

TEST_CASE("small_dense_takes() refuses unsupported shapes, strides and dtypes") {
  if (!core::has_avx2()) return;
  const at::Tensor input = at::ones({4, 6}), weight = at::ones({3, 6}), bias = at::ones({3});
  CHECK(small_dense_takes(input, weight, bias));
  CHECK(small_dense_takes(input, weight, {}));
  CHECK_FALSE(small_dense_takes(at::ones({6}), weight, bias));
  CHECK_FALSE(small_dense_takes(at::ones({1, 6}), weight, bias));
  CHECK_FALSE(small_dense_takes(at::ones({0, 6}), weight, bias));
  CHECK_FALSE(small_dense_takes(at::ones({2, 2, 2, 6}), weight, bias));
  CHECK_FALSE(small_dense_takes(at::ones({4, 5}), weight, bias));  // at::linear says what is wrong
  CHECK_FALSE(small_dense_takes(input, at::ones({1, 6}), at::ones({1})));
  CHECK_FALSE(small_dense_takes(at::ones({6, 4}).t(), weight, bias));
  CHECK_FALSE(small_dense_takes(input, at::ones({6, 3}).t(), bias));
  CHECK_FALSE(small_dense_takes(input.to(at::kDouble), weight.to(at::kDouble), {}));
  at::autocast::set_autocast_enabled(at::kCPU, true);
  CHECK_FALSE(small_dense_takes(input, weight, bias));
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

TEST_CASE("relu keeps NaN, and no gradient passes where nothing did") {
  if (!core::has_avx2()) return;
  const float none = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor weight = at::eye(4).requires_grad_(true);
  const at::Tensor input = at::tensor({none, -1.0F, 0.0F, 2.0F}).repeat({2, 1});
  const at::Tensor output = small_dense(at::nan_to_num(input), weight, {}, true);
  CHECK(at::equal(output, at::tensor({0.0F, 0.0F, 0.0F, 2.0F}).repeat({2, 1})));
  const at::Tensor all_none = small_dense(at::full({2, 4}, none), weight, {}, true);
  CHECK(at::isnan(all_none).all().item<bool>());
  output.sum().backward();
  const at::Tensor row = at::nan_to_num(input[0]) * 2;
  CHECK(at::equal(weight.grad(), at::stack({row * 0, row * 0, row * 0, row})));
}

TEST_CASE("small_dense computes and keeps what gradients need, once") {
  if (!core::has_avx2()) return;
  const at::Tensor input = drawn({4, 6}), weight = drawn({3, 6}), bias = drawn({3});
  small_dense(input, weight.detach(), bias.detach(), false).sum().backward();
  CHECK(input.grad().defined());
  CHECK_FALSE(weight.grad().defined());
  const at::Tensor plain = small_dense(input.detach(), weight.detach(), bias.detach(), true);
  CHECK_FALSE(plain.requires_grad());
  {
    const at::NoGradGuard no_grad;
    CHECK_FALSE(small_dense(input, weight, bias, true).requires_grad());
  }
  const at::Tensor sum = small_dense(input, weight, bias, true).sum();
  sum.backward();
  CHECK_THROWS_AS(sum.backward(), std::exception);  // what it needs is gone
  const at::Tensor output = small_dense(input, weight, bias, false);
  {
    const at::NoGradGuard no_grad;
    weight.add_(1);
  }
  CHECK_THROWS_AS(output.sum().backward(), std::exception);  // the weight has changed
}

}  // namespace
}  // namespace scaletrain::nn
