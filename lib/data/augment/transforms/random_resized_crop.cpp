// Random resized crop: a crop of random area and aspect ratio, resized to image_size (torchvision's
// RandomResizedCrop; Szegedy et al., Going Deeper with Convolutions, 2014, section 6).
#include <algorithm>
#include <cmath>

#include "lib/core/distributions.h"
#include "lib/data/augment/transform.h"
#include "lib/data/image/filter_name.h"

namespace scaletrain::data {
namespace {

constexpr int kTries = 10;

struct Bounds {
  double scale_min, scale_max, ratio_min, ratio_max;
};

// Returns a range of `size` at a random place of `whole`.
Range anywhere(core::Philox& draws, std::int64_t size, std::int64_t whole) {
  return {static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(whole - size + 1))),
          size};
}

// Returns a centre crop, with its aspect ratio limited to the bounds.
Box central(const Bounds& bounds, std::int64_t width, std::int64_t height) {
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  std::int64_t w = width, h = height;
  if (ratio < bounds.ratio_min) {
    h = std::lround(static_cast<double>(w) / bounds.ratio_min);
  } else if (ratio > bounds.ratio_max) {
    w = std::lround(static_cast<double>(h) * bounds.ratio_max);
  }
  w = std::clamp<std::int64_t>(w, 1, width);
  h = std::clamp<std::int64_t>(h, 1, height);
  return {{(width - w) / 2, w}, {(height - h) / 2, h}};
}

Box draw_box(const Bounds& bounds, std::int64_t width, std::int64_t height, core::Philox& draws) {
  const auto area = static_cast<double>(width * height);
  for (int i = 0; i < kTries; ++i) {
    const double target = area * core::uniform(draws, bounds.scale_min, bounds.scale_max);
    const double ratio =
        std::exp(core::uniform(draws, std::log(bounds.ratio_min), std::log(bounds.ratio_max)));
    const std::int64_t w = std::lround(std::sqrt(target * ratio));
    const std::int64_t h = std::lround(std::sqrt(target / ratio));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const Range y = anywhere(draws, h, height);
    return {anywhere(draws, w, width), y};
  }
  return central(bounds, width, height);
}

class RandomResizedCrop : public Crop {
 public:
  RandomResizedCrop(const Bounds& bounds, Filter filter) : bounds_(bounds), filter_(filter) {}

  View view(std::int64_t width, std::int64_t height, std::int64_t image_size,
            core::Philox& draws) const override {
    return resized(draw_box(bounds_, width, height, draws), image_size, filter_);
  }

 private:
  Bounds bounds_;
  Filter filter_;
};

}  // namespace

std::unique_ptr<const Crop> make_random_resized_crop(const recipe::Component& config) {
  return std::make_unique<RandomResizedCrop>(
      Bounds{config.number("scale_min"), config.number("scale_max"), config.number("ratio_min"),
             config.number("ratio_max")},
      filter_named(config.text("filter")));
}

}  // namespace scaletrain::data
