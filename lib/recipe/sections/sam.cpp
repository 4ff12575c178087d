#include "lib/recipe/sections/sam.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Sam>& value) {
  return optional(value, [](Sam& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("rho", number(inner.rho, above(0).to(1000)),
              "Neighborhood radius rho: L2 norm of the weight perturbation. Default: 0.05.")
        .add("adaptive", flag(inner.adaptive),
             "Adaptive SAM (ASAM): scales the perturbation by each weight's size. Use a rho about "
             "ten times as large. Default: false.");
    return keys;
  });
}

}  // namespace scaletrain::recipe
