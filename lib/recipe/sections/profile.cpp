#include "lib/recipe/sections/profile.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Profile>& value) {
  return optional(value, [](Profile& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("after", integer(inner.after, from(0).to(1e12)),
              "Number of steps after the start or resume before the trace begins. Default: 10, "
              "because the first steps are slower.")
        .add("steps", integer(inner.steps, from(1).to(1000)),
             "Number of traced steps. Default: 3.");
    return keys;
  });
}

}  // namespace scaletrain::recipe
