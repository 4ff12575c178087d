#include "lib/data/augment/ops/image_op.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("operations have names") {
  CHECK(image_op_named("shear_x") == ImageOp::kShearX);
  CHECK(image_op_named("invert") == ImageOp::kInvert);
  CHECK(image_op_named("twist") == std::nullopt);
}

TEST_CASE("every operation with the value of no change changes nothing, and another does") {
  const Image image =
      make_image(24, 24, [](auto x, auto y, auto c) { return 7 * x + 3 * y + 11 * c + x * y % 5; });
  struct Case {
    ImageOp op;
    double still, other;
  };
  for (const Case& each :
       {Case{ImageOp::kShearX, 0, 0.3}, Case{ImageOp::kShearY, 0, 0.3},
        Case{ImageOp::kTranslateX, 0, 3}, Case{ImageOp::kTranslateY, 0, 3},
        Case{ImageOp::kRotate, 0, 20}, Case{ImageOp::kBrightness, 1, 1.5},
        Case{ImageOp::kColor, 1, 1.5}, Case{ImageOp::kContrast, 1, 1.5},
        Case{ImageOp::kSharpness, 1, 1.9}, Case{ImageOp::kPosterize, 8, 4},
        Case{ImageOp::kSolarize, 256, 100}, Case{ImageOp::kSolarizeAdd, 0, 50}}) {
    CAPTURE(static_cast<int>(each.op));
    Scratch scratch;
    Image still = image, other = image;
    apply_image_op(each.op, each.still, {}, still, scratch);
    CHECK(still.pixels == image.pixels);
    apply_image_op(each.op, each.other, {}, other, scratch);
    CHECK(other.pixels != image.pixels);
  }
  for (const ImageOp op : {ImageOp::kAutoContrast, ImageOp::kEqualize, ImageOp::kInvert}) {
    Scratch scratch;
    Image other = image;
    apply_image_op(op, 0, {}, other, scratch);
    CHECK(other.pixels != image.pixels);
  }
}
