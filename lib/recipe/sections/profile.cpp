#include "lib/recipe/sections/profile.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Profile>& value) {
  return optional(value, [](Profile& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("after", integer(inner.after, from(0).to(1e12)),
              "steps before it begins, from the start or the resume: the first ones are slower")
        .add("steps", integer(inner.steps, from(1).to(1000)), "steps that are in it");
    return keys;
  });
}

}  // namespace scaletrain::recipe
