#include "lib/input/images.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "lib/core/buffer.h"
#include "lib/data/loader/image_stream.h"

namespace {

using namespace scaletrain;

TEST_CASE("bytes become normalised floats in channels-last layout, labels are copied") {
  constexpr std::int64_t kSize = 5, kCount = 3;
  const auto pool = core::make_host_pool();
  data::Batch batch;
  batch.columns = data::Columns(
      {{data::Element::kUint8, kSize * kSize * 3}, {data::Element::kInt64, 1}}, kCount, *pool);
  batch.count = kCount;
  const std::span<std::uint8_t> pixels = data::pixels_of(batch);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  pixels.back() = 255;
  const std::span<std::int64_t> labels = data::labels_of(batch);
  std::copy_n(std::array<std::int64_t, 3>{4, 0, 9}.begin(), 3, labels.begin());
  recipe::Normalize normalize;
  normalize.mean = {0.5, 0.25, 0.0};
  normalize.std = {0.5, 1.0, 2.0};

  const input::ImageInput input(normalize, 3, at::kCPU);
  const input::ImageTensors result = input.prepare(batch);

  const at::Tensor mean = at::tensor({0.5, 0.25, 0.0}).view({1, 3, 1, 1});
  const at::Tensor std = at::tensor({0.5, 1.0, 2.0}).view({1, 3, 1, 1});
  const at::Tensor bytes =
      at::from_blob(pixels.data(), {kCount, kSize, kSize, 3}, at::kByte).permute({0, 3, 1, 2});
  const at::Tensor expected = ((bytes.to(at::kDouble) / 255 - mean) / std).to(at::kFloat);
  CHECK(at::equal(result.images, expected));
  CHECK(result.images.is_contiguous(at::MemoryFormat::ChannelsLast));

  // The batch's memory goes back to its pool; what was made of it stays.
  std::fill(labels.begin(), labels.end(), 7);
  std::fill(pixels.begin(), pixels.end(), std::uint8_t{0});
  CHECK(at::equal(result.targets, at::tensor({4, 0, 9}, at::kLong)));
  CHECK(at::equal(result.images, expected));
}

TEST_CASE("flags of classes become shares") {
  const auto pool = core::make_host_pool();
  data::Batch batch;
  batch.columns = data::Columns({{data::Element::kUint8, 3}, {data::Element::kUint8, 4}}, 2, *pool);
  batch.count = 2;
  std::ranges::fill(data::pixels_of(batch), std::uint8_t{9});
  const std::span<std::uint8_t> flags = data::class_flags_of(batch);
  std::copy_n(std::array<std::uint8_t, 8>{1, 0, 0, 1, 0, 0, 0, 0}.begin(), 8, flags.begin());
  const at::Tensor targets =
      input::ImageInput(recipe::Normalize(), 3, at::kCPU).prepare(batch).targets;
  std::ranges::fill(flags, std::uint8_t{1});
  CHECK(at::equal(targets, at::tensor({1., 0., 0., 1., 0., 0., 0., 0.}, at::kFloat).view({2, 4})));
}

}  // namespace
