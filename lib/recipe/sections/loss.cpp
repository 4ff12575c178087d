#include "lib/recipe/sections/loss.h"

#include "lib/recipe/component.h"

namespace scaletrain::recipe {

TypePtr describe(Loss& value) {
  return component(value, losses(), [&value](Object& keys, const Row* /*row*/) {
    keys.add("label_smoothing", number(value.label_smoothing, from(0).below(1)),
             "share of the target that is spread over all classes");
  });
}

}  // namespace scaletrain::recipe
