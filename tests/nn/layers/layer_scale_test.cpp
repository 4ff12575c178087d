#include "lib/nn/layers/layer_scale.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::nn {

TEST_CASE("LayerScale multiplies each channel by its factor, which starts as it is asked to") {
  const LayerScale scale(3, 0.5);
  const at::Tensor gamma = scale.named_parameters()["gamma"];
  scale.initialise("gamma", gamma.data(), {});
  CHECK(at::equal(gamma, at::full({3}, 0.5)));
  gamma.data().copy_(at::tensor({1.0f, 2.0f, -1.0f}));
  CHECK(at::equal(scale.forward(at::ones({1, 2, 3})),
                  at::tensor({1.0f, 2.0f, -1.0f}).expand({1, 2, 3})));
}

}  // namespace scaletrain::nn
