#include "lib/recipe/sections/clip.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Clip>& value) {
  const auto limit = [](std::optional<double>& one, double most) {
    return optional(one, [most](double& inner) { return number(inner, above(0).to(most)); });
  };
  return optional(value, [limit](Clip& inner) {
    auto keys = std::make_unique<Object>();
    keys->add(
            "norm", limit(inner.norm, 1e6),
            "Maximum global L2 norm of all gradients, as torch's clip_grad_norm_. For example 1.0.")
        .add("value", limit(inner.value, 1e6),
             "Maximum absolute value of each gradient element, as torch's clip_grad_value_. For "
             "example 0.5.")
        .add("adaptive", limit(inner.adaptive, 100),
             "Adaptive gradient clipping (AGC, as timm's): maximum ratio of gradient norm to "
             "weight norm of each output unit. The head is not clipped. For example 0.01.")
        .exactly_one({"norm", "value", "adaptive"});
    return keys;
  });
}

}  // namespace scaletrain::recipe
