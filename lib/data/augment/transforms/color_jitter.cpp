// Color jitter: random changes of brightness, contrast, saturation and hue in a random order
// (torchvision's ColorJitter on PIL images).
#include <algorithm>
#include <array>
#include <utility>

#include "lib/core/distributions.h"
#include "lib/data/augment/ops/colour.h"
#include "lib/data/augment/ops/image_op.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

struct Strengths {
  double probability, brightness, contrast, saturation, hue;
};

class ColorJitter : public Transform {
 public:
  explicit ColorJitter(const Strengths& strengths) : strengths_(strengths) {}

  void apply(Workspace& work, core::Philox& draws) const override {
    if (!core::happens(draws, strengths_.probability)) return;
    std::array<int, 4> order{0, 1, 2, 3};
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
    for (const int change : order) {
      switch (change) {
        case 0:
          scale(ImageOp::kBrightness, strengths_.brightness, work, draws);
          break;
        case 1:
          scale(ImageOp::kContrast, strengths_.contrast, work, draws);
          break;
        case 2:
          scale(ImageOp::kColor, strengths_.saturation, work, draws);
          break;
        default:
          if (strengths_.hue > 0) {
            turn_hue(core::uniform(draws, -strengths_.hue, strengths_.hue), work.image);
          }
      }
    }
  }

 private:
  // Draws a factor from [max(0, 1 - strength), 1 + strength] and applies `op` with it.
  static void scale(ImageOp op, double strength, Workspace& work, core::Philox& draws) {
    if (strength == 0) return;
    const double factor = core::uniform(draws, std::max(0.0, 1 - strength), 1 + strength);
    apply_image_op(op, factor, {}, work.image, work.scratch);
  }

  Strengths strengths_;
};

}  // namespace

std::unique_ptr<const Transform> make_color_jitter(const recipe::Component& config,
                                                   const recipe::Normalize& /*normalize*/) {
  return std::make_unique<ColorJitter>(
      Strengths{config.number("probability"), config.number("brightness"),
                config.number("contrast"), config.number("saturation"), config.number("hue")});
}

}  // namespace scaletrain::data
