// Random horizontal flip (torchvision's RandomHorizontalFlip).
#include <utility>

#include "lib/data/augment/ops/mirror.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

class RandomFlip : public Transform {
 public:
  explicit RandomFlip(double probability) : probability_(probability) {}

  void apply(Workspace& work, core::Philox& draws) const override {
    if (draws.uniform() < probability_) mirror(work.image, work.scratch);
  }

 private:
  double probability_;
};

}  // namespace

std::unique_ptr<const Transform> make_random_flip(const recipe::Component& config,
                                                  const recipe::Normalize& /*normalize*/) {
  return std::make_unique<RandomFlip>(config.number("probability"));
}

}  // namespace scaletrain::data
