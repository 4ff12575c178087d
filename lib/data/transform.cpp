#include "lib/data/transform.h"

#include <utility>

#include "lib/core/registry.h"

namespace scaletrain::data {

#define SCALETRAIN_TRANSFORM(name, ...) \
  std::unique_ptr<const Transform> make_##name(const recipe::Component&);
#include "lib/recipe/transforms.def"

namespace {

using Factory = std::unique_ptr<const Transform> (*)(const recipe::Component&);

const core::Registry<Factory>& registry() {
  static const core::Registry<Factory> filled = [] {
    core::Registry<Factory> result("transform");
#define SCALETRAIN_TRANSFORM(name, ...) result.add(#name, make_##name);
#include "lib/recipe/transforms.def"
    return result;
  }();
  return filled;
}

}  // namespace

Transforms make_transforms(const std::vector<recipe::Component>& augment) {
  Transforms transforms;
  for (const auto& config : augment) transforms.push_back(registry().find(config.name)(config));
  return transforms;
}

std::vector<std::string> transform_names() { return registry().names(); }

void apply_transforms(const Transforms& transforms, Workspace& work, core::Philox& draws) {
  bool fitted = false;
  const auto fit = [&] {
    if (std::exchange(fitted, true)) return;
    work.resizer.fit(work.image, work.image_size, work.spare);
    std::swap(work.image, work.spare);
  };
  for (const auto& transform : transforms) {
    if (transform->takes_decoded()) {
      fitted = true;
    } else {
      fit();
    }
    transform->apply(work, draws);
  }
  fit();
}

}  // namespace scaletrain::data
