#include "lib/input/normalize.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "lib/dist/device.h"

namespace {

using namespace scaletrain;

// Of the table and of the kernels.
void check_images(const at::Tensor& looked_up, const at::Tensor& computed,
                  const at::Tensor& expected) {
  for (const at::Tensor& images : {looked_up, computed}) {
    CHECK((images.scalar_type() == at::kFloat));
    CHECK(images.sizes() == expected.sizes());
    CHECK(images.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
  CHECK(at::equal(looked_up, expected));
  // Values up to 1 are rounded three times: to the scale, by the product and by the sum.
  CHECK(at::allclose(computed, expected, /*rtol=*/0, /*atol=*/3 * 6e-8));
}

TEST_CASE("the table and the kernels give (value / 255 - mean) / std, channels last") {
  recipe::Normalize normalize;
  normalize.mean = {0.5, 0.25, 0.0};
  normalize.std = {0.5, 1.0, 2.0};
  const at::Tensor bytes = at::arange(256, at::kByte).repeat(3).view({1, 16, 16, 3});
  const at::Tensor mean = at::tensor({0.5, 0.25, 0.0}), std = at::tensor({0.5, 1.0, 2.0});
  const at::Tensor expected =
      ((bytes.to(at::kDouble) / 255 - mean) / std).to(at::kFloat).permute({0, 3, 1, 2});
  const at::Tensor looked_up = input::TableNormalizer(normalize, 3)(bytes);
  const at::Tensor computed = input::KernelNormalizer(normalize, 3, at::kCPU)(bytes);
  check_images(looked_up, computed, expected);
}

TEST_CASE("one channel is Pillow's L, normalized by the averages of mean and std") {
  recipe::Normalize normalize;
  normalize.mean = {0.5, 0.25, 0.0};
  normalize.std = {0.5, 1.0, 1.5};
  // Red, green, blue, two that fall on either side of a half, and a grey; their L in Pillow 13.
  const at::Tensor bytes =
      at::tensor({255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 0, 0, 0, 1, 0, 77, 77, 77}, at::kByte)
          .view({1, 2, 3, 3});
  const at::Tensor grey = at::tensor({76, 150, 29, 0, 1, 77}, at::kDouble).view({1, 1, 2, 3});
  const at::Tensor expected = ((grey / 255 - 0.25) / 1.0).to(at::kFloat);
  const at::Tensor looked_up = input::TableNormalizer(normalize, 1)(bytes);
  const at::Tensor computed = input::KernelNormalizer(normalize, 1, at::kCPU)(bytes);
  check_images(looked_up, computed, expected);
}

TEST_CASE("images of a model in fp64 are normalised with factors of fp64") {
  const recipe::Normalize normalize;  // ImageNet's means, which fp32 does not hold exactly
  for (const std::int64_t channels : {1, 3}) {
    CAPTURE(channels);
    const at::Tensor bytes = at::arange(256, at::kByte).view({1, 16, 16, 1}).expand({1, 16, 16, 3});
    const recipe::Normalize values = recipe::for_channels(normalize, channels);
    const auto count = static_cast<std::size_t>(channels);
    const at::Tensor mean = at::tensor(at::ArrayRef<double>(values.mean.data(), count));
    const at::Tensor std = at::tensor(at::ArrayRef<double>(values.std.data(), count));
    const at::Tensor shades = bytes.narrow(3, 0, channels).to(at::kDouble);
    const at::Tensor expected = ((shades / 255 - mean) / std).permute({0, 3, 1, 2});
    const at::Tensor dense = bytes.contiguous();
    const at::Tensor looked_up = input::TableNormalizer(normalize, channels, at::kDouble)(dense);
    const at::Tensor computed =
        input::KernelNormalizer(normalize, channels, at::kCPU, at::kDouble)(dense);
    for (const at::Tensor& images : {looked_up, computed}) {
      CHECK((images.scalar_type() == at::kDouble));
      CHECK(at::allclose(images, expected, /*rtol=*/0, /*atol=*/2e-15));
    }
  }
}

TEST_CASE("the table and the kernels compute the same brightness for every colour") {
  recipe::Normalize plain;
  plain.mean = {0, 0, 0};
  plain.std = {1, 1, 1};
  const at::Tensor shades = at::arange(0, 256, 5, at::kByte);
  const at::Tensor bytes = at::cartesian_prod({shades, shades, shades}).view({1, 52, 52 * 52, 3});
  const at::Tensor looked_up = input::TableNormalizer(plain, 1)(bytes).mul(255).round();
  const at::Tensor computed = input::KernelNormalizer(plain, 1, at::kCPU)(bytes).mul(255).round();
  CHECK(at::equal(looked_up, computed));
}

TEST_CASE("a device normalises one channel and three as the CPU" *
          doctest::skip(!std::filesystem::exists("/dev/nvidiactl"))) {
  const at::Device device = dist::choose_device("cuda", {.rank = 0, .ranks = 1});
  const at::Tensor bytes = at::arange(0, 250, at::kByte).repeat(6).view({5, 10, 10, 3});
  for (const std::int64_t channels : {1, 3}) {
    const at::Tensor expected = input::TableNormalizer({}, channels)(bytes);
    const at::Tensor images = input::KernelNormalizer({}, channels, device)(bytes.to(device));
    CHECK(at::allclose(images.cpu(), expected, /*rtol=*/0, /*atol=*/1e-6));
  }
}

}  // namespace
