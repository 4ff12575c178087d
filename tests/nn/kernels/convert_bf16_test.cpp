#include "lib/nn/kernels/convert_bf16.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/utils.h>

#include <limits>

#include "lib/core/cpu.h"

namespace scaletrain::nn::kernels {

TEST_CASE("widen and narrow are ATen's conversions, of whole vectors and parts") {
  if (!core::has_avx512()) return;
  torch::manual_seed(1);
  const float infinite = std::numeric_limits<float>::infinity();
  // 1 + 2^-8 lies between two numbers, and so does 1 + 3 * 2^-8: to the even one.
  const at::Tensor odd = at::tensor({1.00390625F, 1.01171875F, 0.0F, -0.0F, 1e-40F, infinite,
                                     -infinite, std::numeric_limits<float>::max()});
  for (const std::int64_t count : {1, 9, 16, 31, 32, 100}) {
    CAPTURE(count);
    const at::Tensor floats = at::cat({odd, at::randn({200})}).narrow(0, 0, count);
    const at::Tensor expected = floats.to(at::kBFloat16);
    const at::Tensor ours = at::zeros({count + 1}, at::kBFloat16);
    narrow(count, floats.const_data_ptr<float>(), static_cast<Bf16*>(ours.mutable_data_ptr()));
    const auto bits = [](const at::Tensor& values) { return values.view(at::kShort); };
    CHECK(at::equal(bits(ours.narrow(0, 0, count)), bits(expected)));
    CHECK(ours[count].item<float>() == 0);  // nothing is written behind them
    const at::Tensor back = at::zeros({count + 1});
    widen(count, static_cast<const Bf16*>(expected.const_data_ptr()),
          back.mutable_data_ptr<float>());
    CHECK(
        at::equal(back.narrow(0, 0, count).view(at::kInt), expected.to(at::kFloat).view(at::kInt)));
    CHECK(back[count].item<float>() == 0);
  }
  // NaN stays, whatever its bits.
  const at::Tensor none = at::full({20}, std::numeric_limits<float>::quiet_NaN());
  none.view(at::kInt)[3] = -1;  // all bits of it
  const at::Tensor ours = at::zeros({20}, at::kBFloat16);
  narrow(20, none.const_data_ptr<float>(), static_cast<Bf16*>(ours.mutable_data_ptr()));
  CHECK(ours.isnan().all().item<bool>());
}

}  // namespace scaletrain::nn::kernels
