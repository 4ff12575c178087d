#include "lib/input/normalize.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace {

using namespace scaletrain;

TEST_CASE("the table and the kernels give (value / 255 - mean) / std, channels last") {
  recipe::Normalize normalize;
  normalize.mean = {0.5, 0.25, 0.0};
  normalize.std = {0.5, 1.0, 2.0};
  const at::Tensor bytes = at::arange(256, at::kByte).repeat(3).view({1, 16, 16, 3});
  const at::Tensor mean = at::tensor({0.5, 0.25, 0.0}), std = at::tensor({0.5, 1.0, 2.0});
  const at::Tensor expected =
      ((bytes.to(at::kDouble) / 255 - mean) / std).to(at::kFloat).permute({0, 3, 1, 2});
  const at::Tensor looked_up = input::TableNormalizer(normalize)(bytes);
  const at::Tensor computed = input::KernelNormalizer(normalize, at::kCPU)(bytes);
  for (const at::Tensor& images : {looked_up, computed}) {
    CHECK((images.scalar_type() == at::kFloat));
    CHECK(images.sizes() == expected.sizes());
    CHECK(images.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
  CHECK(at::equal(looked_up, expected));
  // Values up to 1 are rounded three times: to the scale, by the product and by the sum.
  CHECK(at::allclose(computed, expected, /*rtol=*/0, /*atol=*/3 * 6e-8));
}

}  // namespace
