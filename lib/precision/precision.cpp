#include "lib/precision/precision.h"

#include "lib/core/registry.h"

namespace scaletrain::precision {

#define SCALETRAIN_PRECISION(name, ...) \
  std::unique_ptr<Precision> make_##name(const recipe::Component&, const Hardware&);
#include "lib/recipe/catalog/precisions.def"

namespace {

using Factory = std::unique_ptr<Precision> (*)(const recipe::Component&, const Hardware&);

const core::Registry<Factory>& registry() {
  static const core::Registry<Factory> filled = [] {
    core::Registry<Factory> result("precision");
#define SCALETRAIN_PRECISION(name, ...) result.add(#name, make_##name);
#include "lib/recipe/catalog/precisions.def"
    return result;
  }();
  return filled;
}

}  // namespace

std::unique_ptr<Precision> make_precision(const recipe::Component& precision,
                                          const Hardware& hardware) {
  return registry().find(precision.name)(precision, hardware);
}

}  // namespace scaletrain::precision
