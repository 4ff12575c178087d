// Random crop: zero padding on every side, then a crop of the image's size at a random place
// (torchvision's RandomCrop).
#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

class RandomCrop : public Transform {
 public:
  explicit RandomCrop(std::int64_t padding) : padding_(padding) {}

  void apply(Workspace& work, core::Philox& draws) const override {
    const Image& image = work.image;
    Image& out = work.scratch.image;
    const auto places = static_cast<std::uint64_t>(2 * padding_ + 1);
    // Corner of the crop in the image; negative inside the padding.
    const std::int64_t top = static_cast<std::int64_t>(draws.below(places)) - padding_;
    const std::int64_t left = static_cast<std::int64_t>(draws.below(places)) - padding_;
    out.reshape(image.width, image.height);
    std::fill(out.pixels.begin(), out.pixels.end(), std::uint8_t{0});
    const std::int64_t first = std::max<std::int64_t>(0, -left);  // columns of the crop
    const std::int64_t columns =
        std::min(image.width, image.width - left) - first;  // inside the image
    for (std::int64_t y = 0; y < image.height && columns > 0; ++y) {
      if (top + y < 0 || top + y >= image.height) continue;
      std::memcpy(out.row(y) + first * kChannels, image.row(top + y) + (left + first) * kChannels,
                  static_cast<std::size_t>(columns * kChannels));
    }
    std::swap(work.image, out);
  }

 private:
  std::int64_t padding_;
};

}  // namespace

std::unique_ptr<const Transform> make_random_crop(const recipe::Component& config,
                                                  const recipe::Normalize& /*normalize*/) {
  return std::make_unique<RandomCrop>(config.integer("padding"));
}

}  // namespace scaletrain::data
