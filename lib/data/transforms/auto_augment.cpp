// Two operations of one of the 25 pairs that were learned on ImageNet (Cubuk et al., AutoAugment,
// 2018, table 9; torchvision's AutoAugment with its ImageNet policy).
#include <array>

#include "lib/core/distributions.h"
#include "lib/data/magnitudes.h"
#include "lib/data/sampling_name.h"
#include "lib/data/transform.h"

namespace scaletrain::data {
namespace {

constexpr double kMostLevel = 9;

struct Step {
  ImageOp op{};
  double probability = 0;
  int level = 0;  // 0..9
};

using enum ImageOp;
constexpr std::array<std::array<Step, 2>, 25> kPolicy{{
    {{{kPosterize, 0.4, 8}, {kRotate, 0.6, 9}}}, {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6}}},
    {{{kEqualize, 0.8}, {kEqualize, 0.6}}},      {{{kPosterize, 0.6, 7}, {kPosterize, 0.6, 6}}},
    {{{kEqualize, 0.4}, {kSolarize, 0.2, 4}}},   {{{kEqualize, 0.4}, {kRotate, 0.8, 8}}},
    {{{kSolarize, 0.6, 3}, {kEqualize, 0.6}}},   {{{kPosterize, 0.8, 5}, {kEqualize, 1.0}}},
    {{{kRotate, 0.2, 3}, {kSolarize, 0.6, 8}}},  {{{kEqualize, 0.6}, {kPosterize, 0.4, 6}}},
    {{{kRotate, 0.8, 8}, {kColor, 0.4, 0}}},     {{{kRotate, 0.4, 9}, {kEqualize, 0.6}}},
    {{{kEqualize, 0.0}, {kEqualize, 0.8}}},      {{{kInvert, 0.6}, {kEqualize, 1.0}}},
    {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},   {{{kRotate, 0.8, 8}, {kColor, 1.0, 2}}},
    {{{kColor, 0.8, 8}, {kSolarize, 0.8, 7}}},   {{{kSharpness, 0.4, 7}, {kInvert, 0.6}}},
    {{{kShearX, 0.6, 5}, {kEqualize, 1.0}}},     {{{kColor, 0.4, 0}, {kEqualize, 0.6}}},
    {{{kEqualize, 0.4}, {kSolarize, 0.2, 4}}},   {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6}}},
    {{{kInvert, 0.6}, {kEqualize, 1.0}}},        {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},
    {{{kEqualize, 0.8}, {kEqualize, 0.6}}},
}};

class AutoAugment : public Transform {
 public:
  explicit AutoAugment(Sampling sampling) : movement_{.sampling = sampling} {}

  void apply(Workspace& work, core::Philox& draws) const override {
    for (const Step& step : kPolicy.at(draws.below(kPolicy.size()))) {
      const bool happens = core::happens(draws, step.probability);
      const bool negative = core::happens(draws, 0.5);
      if (!happens) continue;
      const double value = value_at({}, step.op, step.level / kMostLevel, negative,
                                    work.image.width, work.image.height);
      apply_image_op(step.op, value, movement_, work.image, work.scratch);
    }
  }

 private:
  Movement movement_;
};

}  // namespace

std::unique_ptr<const Transform> make_auto_augment(const recipe::Component& config,
                                                   const recipe::Normalize& /*normalize*/) {
  return std::make_unique<AutoAugment>(sampling_named(config.text("interpolation")));
}

}  // namespace scaletrain::data
