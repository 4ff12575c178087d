#include "lib/data/transform.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
using scaletrain::core::DrawPurpose;
using scaletrain::core::Philox;

namespace {

const Image kImage = make_image(12, 8, [](auto x, auto y, auto c) { return 20 * x + 3 * y + c; });

Image transformed(const std::vector<scaletrain::recipe::Component>& augment, std::uint64_t seed,
                  std::uint64_t epoch, std::uint64_t position) {
  Workspace work = workspace(4, kImage);
  Philox draws(seed, DrawPurpose::kAugment, epoch, position);
  apply_transforms(make_transforms(augment), work, draws);
  return work.image;
}

}  // namespace

TEST_CASE("without transforms the image is fitted") {
  Image expected;
  Resizer().fit(kImage, 4, expected);
  CHECK(transformed({}, 1, 0, 0).pixels == expected.pixels);
}

TEST_CASE("an image is fitted once, before the first transform that wants its size") {
  const auto flip = component("random_flip", {{"probability", 1.0}});
  const Image image = transformed({flip, flip}, 1, 0, 0);
  CHECK(image.pixels == transformed({}, 1, 0, 0).pixels);
}

TEST_CASE("a transform's chance is that of seed, epoch and position alone") {
  const auto crop = component("random_crop", {{"padding", std::int64_t{3}}});
  const auto one = transformed({crop}, 1, 2, 3).pixels;
  CHECK(one == transformed({crop}, 1, 2, 3).pixels);
  int same = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    same += one == transformed({crop}, 1, 2, 100 + i).pixels ? 1 : 0;
    same += one == transformed({crop}, 1, 100 + i, 3).pixels ? 1 : 0;
    same += one == transformed({crop}, 100 + i, 2, 3).pixels ? 1 : 0;
  }
  CHECK(same < 20);  // 150 tries at 49 places: 3 are expected
}

TEST_CASE("every transform of the list has its factory") {
  CHECK(transform_names() ==
        std::vector<std::string>{"random_crop", "random_flip", "random_resized_crop"});
}
