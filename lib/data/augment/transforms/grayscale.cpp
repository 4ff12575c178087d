// Random grayscale: removes all colour with a probability (torchvision's RandomGrayscale).
#include "lib/core/distributions.h"
#include "lib/data/augment/ops/colour.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

class Grayscale : public Transform {
 public:
  explicit Grayscale(double probability) : probability_(probability) {}

  void apply(Workspace& work, core::Philox& draws) const override {
    if (core::happens(draws, probability_)) to_grey(work.image);
  }

 private:
  double probability_;
};

}  // namespace

std::unique_ptr<const Transform> make_grayscale(const recipe::Component& config,
                                                const recipe::Normalize& /*normalize*/) {
  return std::make_unique<Grayscale>(config.number("probability"));
}

}  // namespace scaletrain::data
