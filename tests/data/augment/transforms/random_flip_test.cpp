#include <doctest/doctest.h>

#include "lib/data/augment/transform.h"
#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("random_flip swaps left and right as often as its probability says") {
  for (const std::int64_t width : {4, 5}) {
    const Image image =
        make_image(width, width, [](auto x, auto y, auto c) { return 50 * y + 9 * x + c; });
    const Image flipped = make_image(
        width, width, [&](auto x, auto y, auto c) { return 50 * y + 9 * (width - 1 - x) + c; });
    for (const double probability : {0.0, 0.25, 1.0}) {
      const Transforms transforms =
          make_transforms({component("random_flip", {{"probability", probability}})});
      int flips = 0;
      for (std::uint64_t position = 0; position < 400; ++position) {
        const Image out = transformed(transforms, image, width, position);
        const bool swapped = out.pixels == flipped.pixels;
        CHECK((swapped || out.pixels == image.pixels));
        flips += swapped ? 1 : 0;
      }
      CHECK(std::abs(flips - 400 * probability) <= (probability == 0.25 ? 40 : 0));
    }
  }
}
