// Random erasing: overwrites a random box of the image (Zhong et al., Random Erasing Data
// Augmentation, 2017; torchvision's and timm's RandomErasing).
//
// The originals erase after normalization, to 0 or to normal noise. This transform writes the bytes
// that are normalized to the same values: the mean colour, to within half a byte step, or noise
// with the recipe's mean and deviation, clamped to 0..255.
#include <algorithm>
#include <cmath>

#include "lib/core/distributions.h"
#include "lib/data/augment/mean_colour.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

constexpr int kEraseTries = 10;

struct EraseBounds {
  double scale_min, scale_max, ratio_min, ratio_max;
};

class RandomErasing : public Transform {
 public:
  RandomErasing(double probability, const EraseBounds& bounds, bool noise,
                const recipe::Normalize& normalize)
      : probability_(probability),
        bounds_(bounds),
        noise_(noise),
        colour_(mean_colour(normalize)),
        normalize_(normalize) {}

  void apply(Workspace& work, core::Philox& draws) const override {
    if (!core::happens(draws, probability_)) return;
    const auto area = static_cast<double>(work.image.width * work.image.height);
    for (int i = 0; i < kEraseTries; ++i) {
      const double target = area * core::uniform(draws, bounds_.scale_min, bounds_.scale_max);
      const double ratio =
          std::exp(core::uniform(draws, std::log(bounds_.ratio_min), std::log(bounds_.ratio_max)));
      const std::int64_t height = std::lround(std::sqrt(target * ratio));
      const std::int64_t width = std::lround(std::sqrt(target / ratio));
      if (width < 1 || width >= work.image.width || height < 1 || height >= work.image.height) {
        continue;
      }
      const auto top = static_cast<std::int64_t>(
          draws.below(static_cast<std::uint64_t>(work.image.height - height + 1)));
      const auto left = static_cast<std::int64_t>(
          draws.below(static_cast<std::uint64_t>(work.image.width - width + 1)));
      return erase(work.image, {{left, width}, {top, height}}, draws);
    }
  }

 private:
  void erase(Image& image, const Box& box, core::Philox& draws) const {
    for (std::int64_t y = box.y.begin; y < box.y.begin + box.y.size; ++y) {
      std::uint8_t* pixel = image.row(y) + box.x.begin * kChannels;
      for (std::int64_t x = 0; x < box.x.size; ++x, pixel += kChannels) {
        for (std::size_t c = 0; c < kChannels; ++c) {
          pixel[c] = noise_ ? noise(c, draws) : colour_[c];
        }
      }
    }
  }

  std::uint8_t noise(std::size_t channel, core::Philox& draws) const {
    const double value = normalize_.mean[channel] + normalize_.std[channel] * core::normal(draws);
    return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0, 1.0) * 255));
  }

  double probability_;
  EraseBounds bounds_;
  bool noise_;
  Colour colour_;
  recipe::Normalize normalize_;
};

}  // namespace

std::unique_ptr<const Transform> make_random_erasing(const recipe::Component& config,
                                                     const recipe::Normalize& normalize) {
  return std::make_unique<RandomErasing>(
      config.number("probability"),
      EraseBounds{config.number("scale_min"), config.number("scale_max"),
                  config.number("ratio_min"), config.number("ratio_max")},
      config.text("value") == "noise", normalize);
}

}  // namespace scaletrain::data
