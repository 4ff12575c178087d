#include "lib/recipe/sections/clip.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Clip>& value) {
  const auto limit = [](std::optional<double>& one, double most) {
    return optional(one, [most](double& inner) { return number(inner, above(0).to(most)); });
  };
  return optional(value, [limit](Clip& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("norm", limit(inner.norm, 1e6), "largest L2 norm of all gradients as one vector")
        .add("value", limit(inner.value, 1e6), "largest size of each element of the gradients")
        .add("adaptive", limit(inner.adaptive, 100),
             "largest L2 norm of the gradient of each output's weights over that of these weights; "
             "as timm's agc, without the head")
        .exactly_one({"norm", "value", "adaptive"});
    return keys;
  });
}

}  // namespace scaletrain::recipe
