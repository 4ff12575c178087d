#include "lib/recipe/sections/schedule.h"

#include "lib/recipe/component.h"
#include "lib/recipe/duration.h"

namespace scaletrain::recipe {

TypePtr describe(Schedule& value) {
  auto keys = std::make_unique<Object>();
  keys->add("warmup",
            optional(
                value.warmup,
                [](Duration& inner) {
                  return duration(inner, {Duration::Unit::kSteps, Duration::Unit::kEpochs}, true);
                }),
            "how long the learning rate rises, in a straight line, to lr")
      .add("decay", component(value.decay, schedules()), "how it goes on from there")
      .set_short_for("decay");
  return keys;
}

}  // namespace scaletrain::recipe
