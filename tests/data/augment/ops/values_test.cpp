#include "lib/data/augment/ops/values.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

// Equality with Pillow over pictures is in tests/data/augment_test.py.

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

// What becomes of each value, in an image whose size is no multiple of a register's.
template <class Change>
std::vector<int> changed(const Change& change) {
  Image image = make_image(257, 1, [](auto x, auto, auto) { return x % 256; });
  change(image);
  std::vector<int> values;
  for (std::size_t i = 0; i < image.pixels.size(); i += kChannels) {
    CHECK(image.pixels[i] == image.pixels[i + 2]);
    values.push_back(image.pixels[i]);
  }
  CHECK(values.front() == values.back());
  return values;
}

std::vector<int> blended(double factor, std::uint8_t base) {
  return changed([&](Image& image) { blend_values(factor, base, image); });
}

}  // namespace

TEST_CASE("values move to their base or away from it, and are cut") {
  CHECK(blended(0.5, 0)[201] == 100);
  CHECK(blended(2.0, 100)[90] == 80);
  CHECK(blended(2.0, 100)[40] == 0);
  CHECK(blended(2.0, 100)[200] == 255);
  CHECK(blended(0.0, 100)[200] == 100);
}

TEST_CASE("solarizing inverts from the threshold on") {
  const auto solarized = [](double threshold) {
    return changed([&](Image& image) { solarize(threshold, image); });
  };
  CHECK(solarized(128)[127] == 127);
  CHECK(solarized(128)[128] == 127);
  CHECK(solarized(127.5)[127] == 127);
  CHECK(solarized(127.5)[128] == 127);
  CHECK(solarized(0)[0] == 255);
  CHECK(solarized(0)[255] == 0);
  CHECK(solarized(255)[255] == 0);
  CHECK(solarized(255)[254] == 254);
  CHECK(solarized(256)[255] == 255);
}

TEST_CASE("solarize_add raises what is below the threshold, to white at most") {
  const auto raised = [](int amount) {
    return changed([&](Image& image) { solarize_add(amount, 128, image); });
  };
  CHECK(raised(110)[127] == 237);
  CHECK(raised(110)[128] == 128);
  CHECK(raised(200)[127] == 255);
  CHECK(raised(200)[20] == 220);
  CHECK(raised(0)[20] == 20);
}

TEST_CASE("posterizing keeps the upper bits, inverting takes values from white") {
  const auto posterized = [](int bits) {
    return changed([&](Image& image) { posterize(bits, image); });
  };
  CHECK(posterized(2)[200] == 192);
  CHECK(posterized(0)[200] == 0);
  CHECK(posterized(8)[201] == 201);
  CHECK(changed(invert)[3] == 252);
}
