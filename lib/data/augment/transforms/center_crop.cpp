// Centre crop: the shorter side is resized to `resize`, then the centre is cropped, without
// randomness, as in evaluation (torchvision's Resize and CenterCrop).
#include "lib/data/augment/transform.h"
#include "lib/data/image/filter_name.h"

namespace scaletrain::data {
namespace {

class CenterCrop : public Crop {
 public:
  CenterCrop(std::int64_t resize, Filter filter) : resize_(resize), filter_(filter) {}

  View view(std::int64_t width, std::int64_t height, std::int64_t image_size,
            core::Philox& /*draws*/) const override {
    return fitted(width, height, resize_ == 0 ? image_size : resize_, image_size, filter_);
  }

 private:
  std::int64_t resize_;
  Filter filter_;
};

}  // namespace

std::unique_ptr<const Crop> make_center_crop(const recipe::Component& config) {
  return std::make_unique<CenterCrop>(config.integer("resize"),
                                      filter_named(config.text("filter")));
}

}  // namespace scaletrain::data
