// TrivialAugment: one random operation of a random magnitude (Müller and Hutter, TrivialAugment,
// 2021; torchvision's TrivialAugmentWide).
#include "lib/core/distributions.h"
#include "lib/data/augment/magnitudes.h"
#include "lib/data/augment/sampling_name.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

constexpr std::uint64_t kWideBins = 31;
constexpr Magnitudes kWide{
    .shear = 0.99, .translate_pixels = 32, .degrees = 135, .enhance = 0.99, .posterized_bits = 6};

class TrivialAugment : public Transform {
 public:
  explicit TrivialAugment(Sampling sampling) : movement_{.sampling = sampling} {}

  void apply(Workspace& work, core::Philox& draws) const override {
    const ImageOp op = kLeveledOps.at(draws.below(kLeveledOps.size()));
    const double level = static_cast<double>(draws.below(kWideBins)) / (kWideBins - 1);
    const bool negative = core::happens(draws, 0.5);
    const double value = value_at(kWide, op, level, negative, work.image.width, work.image.height);
    apply_image_op(op, value, movement_, work.image, work.scratch);
  }

 private:
  Movement movement_;
};

}  // namespace

std::unique_ptr<const Transform> make_trivial_augment(const recipe::Component& config,
                                                      const recipe::Normalize& /*normalize*/) {
  return std::make_unique<TrivialAugment>(sampling_named(config.text("interpolation")));
}

}  // namespace scaletrain::data
