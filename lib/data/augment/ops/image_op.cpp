#include "lib/data/augment/ops/image_op.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/data/augment/ops/colour.h"
#include "lib/data/augment/ops/histograms.h"
#include "lib/data/augment/ops/values.h"

namespace scaletrain::data {
namespace {

constexpr int kAddBelow = 128;  // SolarizeAdd's threshold

constexpr std::array<std::pair<std::string_view, ImageOp>, 16> kNames{{
    {"identity", ImageOp::kIdentity},
    {"shear_x", ImageOp::kShearX},
    {"shear_y", ImageOp::kShearY},
    {"translate_x", ImageOp::kTranslateX},
    {"translate_y", ImageOp::kTranslateY},
    {"rotate", ImageOp::kRotate},
    {"brightness", ImageOp::kBrightness},
    {"color", ImageOp::kColor},
    {"contrast", ImageOp::kContrast},
    {"sharpness", ImageOp::kSharpness},
    {"posterize", ImageOp::kPosterize},
    {"solarize", ImageOp::kSolarize},
    {"solarize_add", ImageOp::kSolarizeAdd},
    {"auto_contrast", ImageOp::kAutoContrast},
    {"equalize", ImageOp::kEqualize},
    {"invert", ImageOp::kInvert},
}};

}  // namespace

std::optional<ImageOp> image_op_named(std::string_view name) {
  const auto* const found = std::find_if(kNames.begin(), kNames.end(),
                                         [&](const auto& row) { return row.first == name; });
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

void apply_image_op(ImageOp op, double value, const Movement& movement, Image& image,
                    Scratch& scratch) {
  const auto move = [&](const Affine& affine) {
    apply_affine(affine, movement.sampling, movement.fill, image, scratch);
  };
  switch (op) {
    case ImageOp::kIdentity:
      return;
    case ImageOp::kShearX:
      return move({.b = value});
    case ImageOp::kShearY:
      return move({.d = value});
    case ImageOp::kTranslateX:
      return move({.c = -value});
    case ImageOp::kTranslateY:
      return move({.f = -value});
    case ImageOp::kRotate:
      return move(rotation(value, image.width, image.height));
    case ImageOp::kBrightness:
      return blend_values(value, 0, image);
    case ImageOp::kColor:
      return change_saturation(value, image, scratch);
    case ImageOp::kContrast:
      return blend_values(value, mean_luma(image, scratch), image);
    case ImageOp::kSharpness:
      return change_sharpness(value, image, scratch);
    case ImageOp::kPosterize:
      return posterize(static_cast<int>(value), image);
    case ImageOp::kSolarize:
      return solarize(value, image);
    case ImageOp::kSolarizeAdd:
      return solarize_add(static_cast<int>(value), kAddBelow, image);
    case ImageOp::kAutoContrast:
      return auto_contrast(image);
    case ImageOp::kEqualize:
      return equalize(image);
    case ImageOp::kInvert:
      return invert(image);
  }
}

}  // namespace scaletrain::data
