// Magnitudes of the operations of AutoAugment, RandAugment and TrivialAugment at a level, as in
// torchvision.
#pragma once

#include <array>
#include <cstdint>

#include "lib/data/augment/ops/image_op.h"

namespace scaletrain::data {

// Strength of each operation at level 1; at level 0 an operation changes nothing.
struct Magnitudes {
  double shear = 0.3;
  double translate = 150.0 / 331.0;  // fraction of the width or height
  double translate_pixels = 0;       // in pixels; replaces `translate` where above 0
  double degrees = 30;
  double enhance = 0.9;        // brightness, color, contrast, sharpness: distance from factor 1
  double posterized_bits = 4;  // bits taken away, out of 8
};

// Operations that RandAugment and TrivialAugment draw from.
inline constexpr std::array kLeveledOps{
    ImageOp::kIdentity,     ImageOp::kShearX,    ImageOp::kShearY,     ImageOp::kTranslateX,
    ImageOp::kTranslateY,   ImageOp::kRotate,    ImageOp::kBrightness, ImageOp::kColor,
    ImageOp::kContrast,     ImageOp::kSharpness, ImageOp::kPosterize,  ImageOp::kSolarize,
    ImageOp::kAutoContrast, ImageOp::kEqualize};

// Returns the value for apply_image_op at `level`, 0..1. `negative` is the drawn sign, if the
// operation has one.
double value_at(const Magnitudes& magnitudes, ImageOp op, double level, bool negative,
                std::int64_t width, std::int64_t height);

}  // namespace scaletrain::data
