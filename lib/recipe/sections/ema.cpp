#include "lib/recipe/sections/ema.h"

#include <fmt/format.h>

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Ema>& value) {
  return optional(value, [](Ema& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("decay", one_or_more_numbers(inner.decay, from(0).below(1)),
              "share of itself that the mean keeps at an update; of a list a mean for each")
        .add("warmup", flag(inner.warmup),
             "it keeps 1 - (1 + n)^(-2/3) of itself after n updates, as long as that is less: "
             "timm's --model-ema-warmup")
        .add("every", integer(inner.every, from(1).to(1e9)), "steps from one update to the next");
    return keys;
  });
}

void check(const std::optional<Ema>& ema, const Optimizer& optimizer, const Node& tree,
           Problems& problems) {
  if (!ema || !is_mean_of_weights(optimizer)) return;
  problems.add(written_at(tree, {"ema"}), "/ema",
               fmt::format("{} evaluates and saves a mean of the weights already", optimizer.name),
               "leave it out");
}

}  // namespace scaletrain::recipe
