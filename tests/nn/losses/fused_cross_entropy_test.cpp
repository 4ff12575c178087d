#include "lib/nn/losses/fused_cross_entropy.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include <filesystem>

#include "lib/dist/device.h"

namespace scaletrain::nn {
namespace {

TEST_CASE("on a CPU there are no kernels of the loss") {
  CHECK_FALSE(fused_cross_entropy_takes(at::zeros({2, 3}), at::zeros({2}, at::kLong)));
}

TEST_CASE("on a device loss and gradients are those of at::cross_entropy_loss" *
          doctest::skip(!std::filesystem::exists("/dev/nvidiactl"))) {
  const at::Device device = dist::choose_device("cuda", {.rank = 0, .ranks = 1});
  torch::manual_seed(5);
  struct Row {
    std::int64_t rows, classes, stride;
    at::ScalarType type;
    double tolerance;
  };
  for (const Row& row :
       {Row{5, 3, 3, at::kFloat, 1e-5}, Row{7, 257, 257, at::kFloat, 1e-5},
        Row{3, 1000, 1024, at::kFloat, 1e-5}, Row{4, 50257, 50304, at::kHalf, 1e-3},
        Row{4, 50257, 50304, at::kBFloat16, 8e-3}, Row{6, 50257, 50257, at::kBFloat16, 8e-3}}) {
    CAPTURE(row.classes);
    CAPTURE(row.stride);
    const at::Tensor wide =
        torch::randn({row.rows, row.stride}, at::kFloat).mul(4).to(device, row.type);
    const at::Tensor values = wide.narrow(1, 0, row.classes);
    at::Tensor targets = torch::randint(row.classes, {row.rows}, at::kLong);
    targets[1] = -100;
    targets[2] = row.classes - 1;
    targets = targets.to(device);
    std::vector<at::Tensor> losses, gradients;
    for (const bool fused : {true, false}) {
      const at::Tensor logits = values.detach().requires_grad_(true);
      if (fused) REQUIRE(fused_cross_entropy_takes(logits, targets));
      const at::Tensor loss =
          fused ? fused_cross_entropy(logits, targets)
                : at::cross_entropy_loss(logits.to(at::kFloat), targets, {}, at::Reduction::Sum);
      (loss * 0.25).backward();
      losses.push_back(loss.detach().cpu());
      gradients.push_back(logits.grad().to(at::kFloat).cpu());
    }
    CHECK(at::allclose(losses[0], losses[1], 1e-5, 1e-5));
    CHECK(at::allclose(gradients[0], gradients[1], row.tolerance, 1e-7));
  }
}

}  // namespace
}  // namespace scaletrain::nn
