// Gaussian blur of a random width, applied with a probability (torchvision's GaussianBlur in a
// RandomApply).
#include "lib/core/distributions.h"
#include "lib/data/augment/ops/blur.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

class GaussianBlur : public Transform {
 public:
  GaussianBlur(double probability, std::int64_t kernel_size, double sigma_min, double sigma_max)
      : probability_(probability),
        kernel_size_(kernel_size),
        sigma_min_(sigma_min),
        sigma_max_(sigma_max) {}

  void apply(Workspace& work, core::Philox& draws) const override {
    if (!core::happens(draws, probability_)) return;
    const double sigma = core::uniform(draws, sigma_min_, sigma_max_);
    gaussian_blur(kernel_size_, sigma, work.image, work.scratch);
  }

 private:
  double probability_;
  std::int64_t kernel_size_;
  double sigma_min_, sigma_max_;
};

}  // namespace

std::unique_ptr<const Transform> make_gaussian_blur(const recipe::Component& config,
                                                    const recipe::Normalize& /*normalize*/) {
  // An even kernel size has no centre: the next odd size is used.
  return std::make_unique<GaussianBlur>(config.number("probability"),
                                        config.integer("kernel_size") | 1,
                                        config.number("sigma_min"), config.number("sigma_max"));
}

}  // namespace scaletrain::data
