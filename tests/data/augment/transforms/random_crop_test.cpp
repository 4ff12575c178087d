#include <doctest/doctest.h>

#include <set>

#include "lib/data/augment/transform.h"
#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("random_crop moves the image by up to the padding, with zeros around, each way alike") {
  const Image image = make_image(4, 4, [](auto x, auto y, auto) { return 100 + 10 * y + x; });
  const Transforms transforms =
      make_transforms({component("random_crop", {{"padding", std::int64_t{2}}})});
  std::vector<int> seen(25);
  for (std::uint64_t position = 0; position < 2500; ++position) {
    const Image out = transformed(transforms, image, 4, position);
    // Exactly one move explains the whole image.
    int matches = 0;
    for (int top = -2; top <= 2; ++top) {
      for (int left = -2; left <= 2; ++left) {
        const Image moved = make_image(4, 4, [&](auto x, auto y, auto c) -> int {
          const bool inside = y + top >= 0 && y + top < 4 && x + left >= 0 && x + left < 4;
          return inside ? image.row(y + top)[(x + left) * kChannels + c] : 0;
        });
        if (moved.pixels != out.pixels) continue;
        ++matches;
        ++seen[static_cast<std::size_t>((top + 2) * 5 + left + 2)];
      }
    }
    CHECK(matches == 1);
  }
  for (const int count : seen) CHECK(std::abs(count - 100) < 50);  // standard deviation 10
}

TEST_CASE("random_crop with more padding than image may leave only zeros") {
  const Transforms transforms =
      make_transforms({component("random_crop", {{"padding", std::int64_t{9}}})});
  std::set<bool> empty;
  for (std::uint64_t position = 0; position < 200; ++position) {
    const Image out =
        transformed(transforms, make_image(2, 2, [](auto, auto, auto) { return 1; }), 2, position);
    empty.insert(std::count(out.pixels.begin(), out.pixels.end(), 1) == 0);
  }
  CHECK(empty == std::set<bool>{false, true});
}
