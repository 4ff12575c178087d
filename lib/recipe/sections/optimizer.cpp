#include "lib/recipe/sections/optimizer.h"

#include "lib/recipe/component.h"

namespace scaletrain::recipe {

TypePtr describe(Optimizer& value) {
  return component(value, optimizers(), [&value](Object& keys, const Row* /*row*/) {
    keys.require("lr", number(value.lr, above(0).to(1000)), "peak learning rate")
        .add("weight_decay", number(value.weight_decay, from(0).to(1000)),
             "how strongly weights are pulled to zero")
        .add("decay_norm_and_bias", flag(value.decay_norm_and_bias),
             "weight decay for norms and biases too")
        .add("layer_decay", number(value.layer_decay, above(0).to(1)),
             "lr of a layer over that of the next one towards the head, which has lr itself; as "
             "timm's --layer-decay")
        .add("lr_base_batch",
             optional(value.lr_base_batch,
                      [](std::int64_t& inner) { return integer(inner, from(1).to(1e9)); }),
             "lr is meant for this global batch, and scaled with the real one");
  });
}

}  // namespace scaletrain::recipe
