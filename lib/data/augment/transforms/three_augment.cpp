// ThreeAugment: grayscale, solarize or Gaussian blur, each with the same probability (Touvron, Cord
// and Jegou, DeiT III, 2022, section 3.2). DeiT III uses Pillow's GaussianBlur, which approximates
// a Gaussian by box filters; this blur is an exact Gaussian with the same distribution of widths.
#include "lib/core/distributions.h"
#include "lib/data/augment/ops/blur.h"
#include "lib/data/augment/ops/colour.h"
#include "lib/data/augment/ops/image_op.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

constexpr double kThreshold = 128;
constexpr double kSigmaMin = 0.1, kSigmaMax = 2.0;
constexpr std::int64_t kKernel = 13;  // 3 times the largest width on each side

class ThreeAugment : public Transform {
 public:
  void apply(Workspace& work, core::Philox& draws) const override {
    switch (draws.below(3)) {
      case 0:
        return to_grey(work.image);
      case 1:
        return apply_image_op(ImageOp::kSolarize, kThreshold, {}, work.image, work.scratch);
      default:
        return gaussian_blur(kKernel, core::uniform(draws, kSigmaMin, kSigmaMax), work.image,
                             work.scratch);
    }
  }
};

}  // namespace

std::unique_ptr<const Transform> make_three_augment(const recipe::Component& /*config*/,
                                                    const recipe::Normalize& /*normalize*/) {
  return std::make_unique<ThreeAugment>();
}

}  // namespace scaletrain::data
