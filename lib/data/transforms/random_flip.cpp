// Left and right swapped with a probability.
#include <algorithm>

#include "lib/data/transform.h"

namespace scaletrain::data {
namespace {

class RandomFlip : public Transform {
 public:
  explicit RandomFlip(double probability) : probability_(probability) {}

  void apply(Workspace& work, core::Philox& draws) const override {
    if (draws.uniform() >= probability_) return;
    for (std::int64_t y = 0; y < work.image.height; ++y) {
      std::uint8_t* left = work.image.row(y);
      std::uint8_t* right = left + (work.image.width - 1) * kChannels;
      for (; left < right; left += kChannels, right -= kChannels) {
        std::swap_ranges(left, left + kChannels, right);
      }
    }
  }

 private:
  double probability_;
};

}  // namespace

std::unique_ptr<const Transform> make_random_flip(const recipe::Component& config) {
  return std::make_unique<RandomFlip>(config.number("probability"));
}

}  // namespace scaletrain::data
