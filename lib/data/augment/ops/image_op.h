// The image operations that AutoAugment, RandAugment and TrivialAugment choose from, with one value
// each.
#pragma once

#include <optional>
#include <string_view>

#include "lib/data/augment/ops/affine.h"
#include "lib/data/augment/ops/scratch.h"
#include "lib/data/image/image.h"

namespace scaletrain::data {

enum class ImageOp {
  kIdentity,
  kShearX,        // x taken from x + value y
  kShearY,        // y taken from y + value x
  kTranslateX,    // `value` pixels to the right
  kTranslateY,    // `value` pixels down
  kRotate,        // `value` degrees counter-clockwise
  kBrightness,    // times `value`
  kColor,         // saturation times `value`
  kContrast,      // times `value`
  kSharpness,     // times `value`
  kPosterize,     // `value` bits are kept
  kSolarize,      // inverted from `value` on
  kSolarizeAdd,   // `value` added below 128
  kAutoContrast,  // without a value, as the rest
  kEqualize,
  kInvert,
};

// "shear_x" and so on; nullopt for no such name.
std::optional<ImageOp> image_op_named(std::string_view name);

// Interpolation and fill colour of the operations that move pixels.
struct Movement {
  Sampling sampling = Sampling::kNearest;
  Colour fill{};
};

void apply_image_op(ImageOp op, double value, const Movement& movement, Image& image,
                    Scratch& scratch);

}  // namespace scaletrain::data
