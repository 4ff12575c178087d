#include "lib/data/augment/ops/mirror.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("columns change places at every width") {
  for (std::int64_t width = 1; width < 40; ++width) {
    const auto value = [](auto x, auto y, auto c) { return 6 * x + 50 * y + c; };
    Image image = make_image(width, 3, value);
    Scratch scratch;
    mirror(image, scratch);
    CAPTURE(width);
    CHECK(image.pixels == make_image(width, 3, [&](auto x, auto y, auto c) {
                            return value(width - 1 - x, y, c);
                          }).pixels);
  }
}
