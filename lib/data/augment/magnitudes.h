// How strong an operation of AutoAugment, RandAugment or TrivialAugment is at a level, as
// torchvision has it.
#pragma once

#include <array>
#include <cstdint>

#include "lib/data/augment/ops/image_op.h"

namespace scaletrain::data {

// Of each operation at level 1; at level 0 it changes nothing.
struct Magnitudes {
  double shear = 0.3;
  double translate = 150.0 / 331.0;  // of the width or height
  double translate_pixels = 0;       // more than 0: instead of that
  double degrees = 30;
  double enhance = 0.9;        // of brightness, color, contrast and sharpness: away from 1
  double posterized_bits = 4;  // of 8
};

// What RandAugment and TrivialAugment choose from.
inline constexpr std::array kLeveledOps{
    ImageOp::kIdentity,     ImageOp::kShearX,    ImageOp::kShearY,     ImageOp::kTranslateX,
    ImageOp::kTranslateY,   ImageOp::kRotate,    ImageOp::kBrightness, ImageOp::kColor,
    ImageOp::kContrast,     ImageOp::kSharpness, ImageOp::kPosterize,  ImageOp::kSolarize,
    ImageOp::kAutoContrast, ImageOp::kEqualize};

// The value for apply_image_op at `level`, 0..1. `negative` is the drawn sign, where the operation
// has one.
double value_at(const Magnitudes& magnitudes, ImageOp op, double level, bool negative,
                std::int64_t width, std::int64_t height);

}  // namespace scaletrain::data
