#include "lib/data/loader/image_sizes.h"

#include <doctest/doctest.h>

#include <vector>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace recipe = scaletrain::recipe;

TEST_CASE("images grow in steps of a multiple, by the numbers of FFCV's ImageNet example") {
  // Its rn50_88_epochs.yaml, asked once an epoch: min_res 160, max_res 192, from epoch 65 to 76.
  const recipe::ResizeRamp ramp{.from = 160,
                                .start = {recipe::Duration::Unit::kEpochs, 65},
                                .over = {recipe::Duration::Unit::kEpochs, 11}};
  const ImageSizes sizes = plan_image_sizes(192, ramp, 1);
  for (const int epoch : {0, 64, 65, 70}) CHECK(sizes.at(epoch) == 160);
  for (const int epoch : {71, 76, 87}) CHECK(sizes.at(epoch) == 192);  // 5.5 of 11: half way
}

TEST_CASE("on the way a size is the nearest multiple, and the ends are as they are asked for") {
  const recipe::ResizeRamp ramp{
      .from = 10, .over = {recipe::Duration::Unit::kEpochs, 2}, .multiple_of = 8};
  const ImageSizes sizes = plan_image_sizes(30, ramp, 5);
  std::vector<std::int64_t> found;
  for (int step = 0; step < 12; ++step) found.push_back(sizes.at(step));
  // 10, 12, 14, ... by steps, of which 8 and 32 are out of bounds
  CHECK(found == std::vector<std::int64_t>{10, 16, 16, 16, 16, 16, 24, 24, 24, 30, 30, 30});
}

TEST_CASE("without a ramp all images have one size") {
  const ImageSizes sizes = plan_image_sizes(224, std::nullopt, 5);
  for (const int step : {0, 1, 99}) CHECK(sizes.at(step) == 224);
}

TEST_CASE("a ramp may be given in steps") {
  const recipe::ResizeRamp ramp{.from = 8,
                                .start = {recipe::Duration::Unit::kSteps, 2},
                                .over = {recipe::Duration::Unit::kSteps, 2},
                                .multiple_of = 1};
  const ImageSizes sizes = plan_image_sizes(16, ramp, 100);
  CHECK(sizes.at(2) == 8);
  CHECK(sizes.at(3) == 12);
  CHECK(sizes.at(4) == 16);
}
