#include "lib/data/augment/magnitudes.h"

#include <doctest/doctest.h>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("magnitude 9 of 30 is torchvision's") {
  const auto at = [](ImageOp op, bool negative = false) {
    return value_at({}, op, 9.0 / 30, negative, 331, 662);
  };
  CHECK(at(ImageOp::kShearX) == doctest::Approx(0.09));
  CHECK(at(ImageOp::kShearY, true) == doctest::Approx(-0.09));
  CHECK(at(ImageOp::kTranslateX) == 45);         // 150 * 0.3
  CHECK(at(ImageOp::kTranslateY, true) == -90);  // 300 * 0.3
  CHECK(at(ImageOp::kRotate) == doctest::Approx(9));
  CHECK(at(ImageOp::kBrightness) == doctest::Approx(1.27));
  CHECK(at(ImageOp::kSharpness, true) == doctest::Approx(0.73));
  CHECK(at(ImageOp::kPosterize) == 7);  // 8 - round(1.2)
  CHECK(at(ImageOp::kSolarize) == doctest::Approx(178.5));
  CHECK(at(ImageOp::kEqualize) == 0);
}

TEST_CASE("pixels of a translation are whole, and may be a number instead of a share") {
  CHECK(value_at({}, ImageOp::kTranslateX, 0.5, true, 100, 100) == -22);  // 22.66
  CHECK(value_at({.translate_pixels = 32}, ImageOp::kTranslateX, 0.5, false, 999, 1) == 16);
}
