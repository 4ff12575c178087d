#include "lib/optim/decay.h"

#include <algorithm>

#include "lib/core/registry.h"

namespace scaletrain::optim {

#define SCALETRAIN_SCHEDULE(name, ...) Decay make_##name(const recipe::Component&, DecaySpan);
#include "lib/recipe/catalog/schedules.def"

namespace {

using Factory = Decay (*)(const recipe::Component&, DecaySpan);

const core::Registry<Factory>& registry() {
  static const core::Registry<Factory> filled = [] {
    core::Registry<Factory> result("schedule");
#define SCALETRAIN_SCHEDULE(name, ...) result.add(#name, make_##name);
#include "lib/recipe/catalog/schedules.def"
    return result;
  }();
  return filled;
}

}  // namespace

Decay make_decay(const recipe::Component& config, DecaySpan span) {
  return registry().find(config.name)(config, span);
}

double progress(std::int64_t step, DecaySpan span) {
  if (span.steps <= 0) return 1;
  return std::min(1.0, static_cast<double>(step) / static_cast<double>(span.steps));
}

}  // namespace scaletrain::optim
