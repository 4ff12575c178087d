// RandAugment as timm's "rand-m9-mstd0.5-inc1": each operation happens with a probability, with a
// magnitude from a normal distribution, and a larger magnitude is always a stronger change.
//
// Geometric operations interpolate bilinearly (timm's default draws between bilinear and bicubic)
// and fill empty pixels with the mean colour.
#include <algorithm>
#include <array>

#include "lib/core/distributions.h"
#include "lib/data/augment/mean_colour.h"
#include "lib/data/augment/ops/image_op.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

constexpr double kTop = 10;  // the largest magnitude

constexpr std::array kTimmOps{ImageOp::kAutoContrast, ImageOp::kEqualize,   ImageOp::kInvert,
                              ImageOp::kRotate,       ImageOp::kPosterize,  ImageOp::kSolarize,
                              ImageOp::kSolarizeAdd,  ImageOp::kColor,      ImageOp::kContrast,
                              ImageOp::kBrightness,   ImageOp::kSharpness,  ImageOp::kShearX,
                              ImageOp::kShearY,       ImageOp::kTranslateX, ImageOp::kTranslateY};

// timm's level functions at `level`, 0..1.
double timm_value(ImageOp op, double level, double sign, const Image& image) {
  const auto whole = [](double value) { return static_cast<double>(static_cast<int>(value)); };
  switch (op) {
    case ImageOp::kRotate:
      return sign * 30 * level;
    case ImageOp::kPosterize:
      return 4 - whole(4 * level);
    case ImageOp::kSolarize:
      return 256 - std::min(256.0, whole(256 * level));
    case ImageOp::kSolarizeAdd:
      return std::min(128.0, whole(110 * level));
    case ImageOp::kColor:
    case ImageOp::kContrast:
    case ImageOp::kBrightness:
    case ImageOp::kSharpness:
      return std::max(0.1, 1 + sign * 0.9 * level);
    case ImageOp::kShearX:
    case ImageOp::kShearY:
      return sign * 0.3 * level;
    case ImageOp::kTranslateX:
      return sign * 0.45 * level * static_cast<double>(image.width);
    case ImageOp::kTranslateY:
      return sign * 0.45 * level * static_cast<double>(image.height);
    default:
      return 0;
  }
}

class RandAugmentTimm : public Transform {
 public:
  RandAugmentTimm(const recipe::Component& config, const recipe::Normalize& normalize)
      : num_ops_(config.integer("num_ops")),
        magnitude_(config.number("magnitude")),
        magnitude_std_(config.number("magnitude_std")),
        probability_(config.number("probability")),
        movement_{Sampling::kBilinear, mean_colour(normalize)} {}

  void apply(Workspace& work, core::Philox& draws) const override {
    for (std::int64_t i = 0; i < num_ops_; ++i) {
      const ImageOp op = kTimmOps.at(draws.below(kTimmOps.size()));
      const bool happens = core::happens(draws, probability_);
      const double magnitude =
          std::clamp(magnitude_ + magnitude_std_ * core::normal(draws), 0.0, kTop);
      const double sign = core::happens(draws, 0.5) ? -1 : 1;
      if (!happens) continue;
      apply_image_op(op, timm_value(op, magnitude / kTop, sign, work.image), movement_, work.image,
                     work.scratch);
    }
  }

 private:
  std::int64_t num_ops_;
  double magnitude_, magnitude_std_, probability_;
  Movement movement_;
};

}  // namespace

std::unique_ptr<const Transform> make_rand_augment_timm(const recipe::Component& config,
                                                        const recipe::Normalize& normalize) {
  return std::make_unique<RandAugmentTimm>(config, normalize);
}

}  // namespace scaletrain::data
