#include "lib/nn/layers/squeeze_excite.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

namespace scaletrain::nn {

TEST_CASE("SqueezeExcite weighs a channel by the hard sigmoid of two layers over the means") {
  torch::manual_seed(1);
  const SqueezeExcite layer(4, 2);
  const at::NoGradGuard no_grad;
  auto tensors = layer.named_parameters();
  for (auto& item : tensors) item.value().normal_();
  const at::Tensor input = torch::randn({3, 4, 5, 5});
  const at::Tensor hidden =
      at::linear(input.mean({2, 3}), tensors["fc1.weight"].view({2, 4}), tensors["fc1.bias"])
          .relu();
  const at::Tensor weights =
      ((at::linear(hidden, tensors["fc2.weight"].view({4, 2}), tensors["fc2.bias"]) + 3) / 6)
          .clamp(0, 1);
  CHECK(at::allclose(layer.forward(input), input * weights.view({3, 4, 1, 1}), 1e-5, 1e-6));
}

}  // namespace scaletrain::nn
