// RandAugment: several random operations in a row, all of one magnitude (Cubuk et al., RandAugment,
// 2019; torchvision's RandAugment).
#include "lib/core/distributions.h"
#include "lib/data/augment/magnitudes.h"
#include "lib/data/augment/sampling_name.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

constexpr double kMostMagnitude = 30;

class RandAugment : public Transform {
 public:
  RandAugment(std::int64_t num_ops, std::int64_t magnitude, Sampling sampling)
      : num_ops_(num_ops),
        level_(static_cast<double>(magnitude) / kMostMagnitude),
        movement_{.sampling = sampling} {}

  void apply(Workspace& work, core::Philox& draws) const override {
    for (std::int64_t i = 0; i < num_ops_; ++i) {
      const ImageOp op = kLeveledOps.at(draws.below(kLeveledOps.size()));
      const bool negative = core::happens(draws, 0.5);
      const double value = value_at({}, op, level_, negative, work.image.width, work.image.height);
      apply_image_op(op, value, movement_, work.image, work.scratch);
    }
  }

 private:
  std::int64_t num_ops_;
  double level_;
  Movement movement_;
};

}  // namespace

std::unique_ptr<const Transform> make_rand_augment(const recipe::Component& config,
                                                   const recipe::Normalize& /*normalize*/) {
  return std::make_unique<RandAugment>(config.integer("num_ops"), config.integer("magnitude"),
                                       sampling_named(config.text("interpolation")));
}

}  // namespace scaletrain::data
