#include "lib/data/augment/magnitudes.h"

#include <cmath>

namespace scaletrain::data {
namespace {

double pixels(const Magnitudes& magnitudes, double level, std::int64_t size) {
  const double most = magnitudes.translate_pixels > 0
                          ? magnitudes.translate_pixels
                          : magnitudes.translate * static_cast<double>(size);
  return std::trunc(most * level);
}

}  // namespace

double value_at(const Magnitudes& magnitudes, ImageOp op, double level, bool negative,
                std::int64_t width, std::int64_t height) {
  const double sign = negative ? -1 : 1;
  switch (op) {
    case ImageOp::kShearX:
    case ImageOp::kShearY:
      return sign * magnitudes.shear * level;
    case ImageOp::kTranslateX:
      return sign * pixels(magnitudes, level, width);
    case ImageOp::kTranslateY:
      return sign * pixels(magnitudes, level, height);
    case ImageOp::kRotate:
      return sign * magnitudes.degrees * level;
    case ImageOp::kBrightness:
    case ImageOp::kColor:
    case ImageOp::kContrast:
    case ImageOp::kSharpness:
      return 1 + sign * magnitudes.enhance * level;
    case ImageOp::kPosterize:
      return 8 - std::round(magnitudes.posterized_bits * level);
    case ImageOp::kSolarize:
      return 255 * (1 - level);
    default:
      return 0;
  }
}

}  // namespace scaletrain::data
