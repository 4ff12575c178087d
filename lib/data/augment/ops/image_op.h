// Image operations of AutoAugment, RandAugment and TrivialAugment, with one value each.
#pragma once

#include <optional>
#include <string_view>

#include "lib/data/augment/ops/affine.h"
#include "lib/data/augment/ops/scratch.h"
#include "lib/data/image/image.h"

namespace scaletrain::data {

enum class ImageOp {
  kIdentity,
  kShearX,        // shear: x is read from x + value y
  kShearY,        // shear: y is read from y + value x
  kTranslateX,    // shift by `value` pixels to the right
  kTranslateY,    // shift by `value` pixels down
  kRotate,        // `value` degrees counter-clockwise
  kBrightness,    // brightness times `value`
  kColor,         // saturation times `value`
  kContrast,      // contrast times `value`
  kSharpness,     // sharpness times `value`
  kPosterize,     // keeps `value` bits
  kSolarize,      // inverts values from `value` on
  kSolarizeAdd,   // adds `value` to values below 128
  kAutoContrast,  // no value, like the following ones
  kEqualize,
  kInvert,
};

// Returns the operation named "shear_x" and so on; nullopt for other names.
std::optional<ImageOp> image_op_named(std::string_view name);

// Interpolation and fill colour of the operations that move pixels.
struct Movement {
  Sampling sampling = Sampling::kNearest;
  Colour fill{};
};

void apply_image_op(ImageOp op, double value, const Movement& movement, Image& image,
                    Scratch& scratch);

}  // namespace scaletrain::data
