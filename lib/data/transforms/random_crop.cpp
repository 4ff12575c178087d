// Zero padding on every side, then a crop of image_size anywhere (torchvision's RandomCrop).
#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/data/transform.h"

namespace scaletrain::data {
namespace {

class RandomCrop : public Transform {
 public:
  explicit RandomCrop(std::int64_t padding) : padding_(padding) {}

  void apply(Workspace& work, core::Philox& draws) const override {
    const std::int64_t size = work.image_size;
    const auto places = static_cast<std::uint64_t>(2 * padding_ + 1);
    // Of the crop's corner in the image; negative in the padding.
    const std::int64_t top = static_cast<std::int64_t>(draws.below(places)) - padding_;
    const std::int64_t left = static_cast<std::int64_t>(draws.below(places)) - padding_;
    work.spare.reshape(size, size);
    std::fill(work.spare.pixels.begin(), work.spare.pixels.end(), std::uint8_t{0});
    const std::int64_t first = std::max<std::int64_t>(0, -left);       // columns of the crop
    const std::int64_t columns = std::min(size, size - left) - first;  // inside the image
    for (std::int64_t y = 0; y < size && columns > 0; ++y) {
      if (top + y < 0 || top + y >= size) continue;
      std::memcpy(work.spare.row(y) + first * kChannels,
                  work.image.row(top + y) + (left + first) * kChannels,
                  static_cast<std::size_t>(columns * kChannels));
    }
    std::swap(work.image, work.spare);
  }

 private:
  std::int64_t padding_;
};

}  // namespace

std::unique_ptr<const Transform> make_random_crop(const recipe::Component& config) {
  return std::make_unique<RandomCrop>(config.integer("padding"));
}

}  // namespace scaletrain::data
