#include "lib/recipe/sections/mix.h"

#include <fmt/format.h>

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Mix>& value) {
  return optional(value, [](Mix& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("mixup", number(inner.mixup, from(0).to(100)),
              "alpha of the Beta distribution that images are averaged by; 0: no mixup")
        .add("cutmix", number(inner.cutmix, from(0).to(100)),
             "alpha of the Beta distribution that boxes are exchanged by; 0: no cutmix")
        .add("probability", number(inner.probability, from(0).to(1)), "share of the pairs mixed")
        .add("cutmix_share", number(inner.cutmix_share, from(0).to(1)),
             "of them cutmix, where both are asked for")
        .at_least_one({"mixup", "cutmix"});
    return keys;
  });
}

void check(const std::optional<Mix>& mix, std::int64_t per_device, const Node& tree,
           Problems& problems) {
  if (!mix || per_device % 2 == 0) return;
  problems.add(written_at(tree, {"batch", "per_device"}), "/batch/per_device",
               fmt::format("{} is odd, and /mix mixes pairs of samples", per_device),
               fmt::format("use {}", per_device + 1));
}

}  // namespace scaletrain::recipe
