#include "lib/recipe/sections/sam.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Sam>& value) {
  return optional(value, [](Sam& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("rho", number(inner.rho, above(0).to(1000)),
              "how far away the gradients are taken, as L2 norm over all weights")
        .add("adaptive", flag(inner.adaptive),
             "ASAM: each weight moves in proportion to its size, with a rho about ten times as "
             "large");
    return keys;
  });
}

}  // namespace scaletrain::recipe
