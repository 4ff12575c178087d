#include "lib/recipe/sections/clip.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Clip>& value) {
  return optional(value, [](Clip& inner) {
    auto keys = std::make_unique<Object>();
    keys->require("norm", number(inner.norm, above(0).to(1e6)),
                  "largest L2 norm of all gradients as one vector");
    return keys;
  });
}

}  // namespace scaletrain::recipe
