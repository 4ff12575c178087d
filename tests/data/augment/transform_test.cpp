#include "lib/data/augment/transform.h"

#include <doctest/doctest.h>

#include "lib/recipe/catalog/lists.h"
#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
using scaletrain::core::DrawPurpose;
using scaletrain::core::Philox;

namespace {

const Image kImage = make_image(12, 8, [](auto x, auto y, auto c) { return 20 * x + 3 * y + c; });

std::vector<std::uint8_t> pixels(const std::vector<scaletrain::recipe::Component>& augment,
                                 std::uint64_t seed, std::uint64_t epoch, std::uint64_t position) {
  Philox draws(seed, DrawPurpose::kAugment, epoch, position);
  return transformed(make_transforms(augment), kImage, 4, draws).pixels;
}

}  // namespace

TEST_CASE("without a crop the image is fitted, whatever comes then") {
  const auto fit = resize(kImage, fitted(12, 8, 4, 4)).pixels;
  CHECK(pixels({}, 1, 0, 0) == fit);
  const auto flip = component("random_flip", {{"probability", 1.0}});
  CHECK(pixels({flip, flip}, 1, 0, 0) == fit);
}

TEST_CASE("a transform's chance is that of seed, epoch and position alone") {
  const auto crop = component("random_crop", {{"padding", std::int64_t{3}}});
  const auto one = pixels({crop}, 1, 2, 3);
  CHECK(one == pixels({crop}, 1, 2, 3));
  int same = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    same += one == pixels({crop}, 1, 2, 100 + i) ? 1 : 0;
    same += one == pixels({crop}, 1, 100 + i, 3) ? 1 : 0;
    same += one == pixels({crop}, 100 + i, 2, 3) ? 1 : 0;
  }
  CHECK(same < 20);  // 150 tries at 49 places: 3 are expected
}

TEST_CASE("every transform of the list has its factory") {
  for (const auto& row : scaletrain::recipe::transforms().rows) {
    scaletrain::recipe::Component config;
    choose(config, row);
    const Transforms transforms = make_transforms({config});
    CHECK((transforms.crop != nullptr) == row.has_rule(scaletrain::recipe::Rule::Kind::kFirst));
    CHECK(transformed(transforms, kImage, 4, 0).pixels.size() == 48);
  }
}
