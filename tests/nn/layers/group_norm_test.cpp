#include "lib/nn/layers/group_norm.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

#include "lib/nn/layers/image_norm.h"
#include "lib/nn/layers/sync_batch_norm.h"
#include "tests/nn/layers/layer_support.h"

namespace scaletrain::nn {

TEST_CASE("GroupNorm is PyTorch's with 32 groups, or those that divide the channels") {
  torch::manual_seed(1);
  for (const auto& [channels, groups] : {std::pair{64, 32}, std::pair{24, 8}, std::pair{16, 16}}) {
    const int count = channels;
    CAPTURE(count);
    torch::nn::GroupNorm peer(torch::nn::GroupNormOptions(groups, channels).eps(1e-3));
    GroupNorm ours(channels, 1e-3);
    for (const at::Tensor& parameter : peer->parameters()) {
      const at::NoGradGuard no_grad;
      parameter.uniform_(0.5, 1.5);
    }
    copy_tensors(*peer, ours);
    compare_layers([&](const at::Tensor& x) { return ours.forward(x, {}); },
                   [&](const at::Tensor& x) { return peer->forward(x); },
                   torch::randn({2, channels, 3, 3}), ours, *peer);
  }
}

TEST_CASE("a recipe's norm is the layer of that name") {
  CHECK(std::dynamic_pointer_cast<GroupNorm>(make_image_norm("group", 4)) != nullptr);
  CHECK(std::dynamic_pointer_cast<SyncBatchNorm>(make_image_norm("sync_batch", 4)) != nullptr);
  const auto batch = make_image_norm("batch", 4);
  CHECK(std::dynamic_pointer_cast<BatchNorm>(batch) != nullptr);
  CHECK(std::dynamic_pointer_cast<SyncBatchNorm>(batch) == nullptr);
}

}  // namespace scaletrain::nn
