#include "lib/recipe/sections/ema.h"

#include <fmt/format.h>

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Ema>& value) {
  return optional(value, [](Ema& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("decay", one_or_more_numbers(inner.decay, from(0).below(1)),
              "EMA decay: weight of the old average in each update, as timm's --model-ema-decay. "
              "Default: 0.9999. A list keeps one EMA for each decay.")
        .add("warmup", flag(inner.warmup),
             "Warmup of the decay, as timm's --model-ema-warmup: at most 1 - (1 + n)^(-2/3) after "
             "n updates. Default: false.")
        .add("every", integer(inner.every, from(1).to(1e9)),
             "Optimizer steps between EMA updates. Default: 1.");
    return keys;
  });
}

void check(const std::optional<Ema>& ema, const Optimizer& optimizer, const Node& tree,
           Problems& problems) {
  if (!ema || !is_mean_of_weights(optimizer)) return;
  problems.add(written_at(tree, {"ema"}), "/ema",
               fmt::format("{} evaluates and saves averaged weights already", optimizer.name),
               "leave it out");
}

}  // namespace scaletrain::recipe
