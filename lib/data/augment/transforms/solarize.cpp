// Random solarize: inverts bright values with a probability (torchvision's RandomSolarize).
#include "lib/core/distributions.h"
#include "lib/data/augment/ops/image_op.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

class Solarize : public Transform {
 public:
  Solarize(double probability, std::int64_t threshold)
      : probability_(probability), threshold_(static_cast<double>(threshold)) {}

  void apply(Workspace& work, core::Philox& draws) const override {
    if (!core::happens(draws, probability_)) return;
    apply_image_op(ImageOp::kSolarize, threshold_, {}, work.image, work.scratch);
  }

 private:
  double probability_, threshold_;
};

}  // namespace

std::unique_ptr<const Transform> make_solarize(const recipe::Component& config,
                                               const recipe::Normalize& /*normalize*/) {
  return std::make_unique<Solarize>(config.number("probability"), config.integer("threshold"));
}

}  // namespace scaletrain::data
