#include "lib/recipe/sections/offload.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Offload>& value) {
  return optional(value, [](Offload& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("activations", flag(inner.activations),
              "what forward keeps for backward, but for the last unit's")
        .add("optimizer", flag(inner.optimizer),
             "the optimizer's state, and with it the update of the weights")
        .at_least_one({"activations", "optimizer"});
    return keys;
  });
}

}  // namespace scaletrain::recipe
