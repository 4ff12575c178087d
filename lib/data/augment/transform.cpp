#include "lib/data/augment/transform.h"

#include "lib/core/registry.h"

namespace scaletrain::data {

#define SCALETRAIN_CROP(name, ...) \
  std::unique_ptr<const Crop> make_##name(const recipe::Component&);
#define SCALETRAIN_TRANSFORM(name, ...) \
  std::unique_ptr<const Transform> make_##name(const recipe::Component&, const recipe::Normalize&);
#include "lib/recipe/catalog/transforms.def"

namespace {

using MakeCrop = std::unique_ptr<const Crop> (*)(const recipe::Component&);
using MakeTransform = std::unique_ptr<const Transform> (*)(const recipe::Component&,
                                                           const recipe::Normalize&);

const core::Registry<MakeCrop>& crops() {
  static const core::Registry<MakeCrop> filled = [] {
    core::Registry<MakeCrop> result("crop");
#define SCALETRAIN_CROP(name, ...) result.add(#name, make_##name);
#define SCALETRAIN_TRANSFORM(name, ...)
#include "lib/recipe/catalog/transforms.def"
    return result;
  }();
  return filled;
}

const core::Registry<MakeTransform>& changes() {
  static const core::Registry<MakeTransform> filled = [] {
    core::Registry<MakeTransform> result("transform");
#define SCALETRAIN_CROP(name, ...)
#define SCALETRAIN_TRANSFORM(name, ...) result.add(#name, make_##name);
#include "lib/recipe/catalog/transforms.def"
    return result;
  }();
  return filled;
}

}  // namespace

Transforms make_transforms(const std::vector<recipe::Component>& augment,
                           const recipe::Normalize& normalize) {
  Transforms transforms;
  for (const auto& config : augment) {
    if (crops().has(config.name)) {
      transforms.crop = crops().find(config.name)(config);
    } else {
      transforms.changes.push_back(changes().find(config.name)(config, normalize));
    }
  }
  return transforms;
}

View Transforms::view(std::int64_t width, std::int64_t height, std::int64_t image_size,
                      core::Philox& draws) const {
  if (crop == nullptr) return fitted(width, height, image_size, image_size);
  return crop->view(width, height, image_size, draws);
}

void Transforms::apply(Workspace& work, core::Philox& draws) const {
  for (const auto& change : changes) change->apply(work, draws);
}

}  // namespace scaletrain::data
