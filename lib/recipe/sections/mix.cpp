#include "lib/recipe/sections/mix.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

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
        .add("off_epochs", integer(inner.off_epochs, from(0).to(kMostCount)),
             "in so many epochs at the end nothing is mixed")
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

void check_off_epochs(const std::optional<Mix>& mix, const Duration& length, const Node& tree,
                      Problems& problems) {
  if (!mix || mix->off_epochs == 0 || length.unit == Duration::Unit::kEpochs) return;
  problems.add(written_at(tree, {"mix", "off_epochs"}), "/mix/off_epochs",
               "counts epochs from the end, and the length of training is given in steps",
               R"(give it in "epochs", or leave this out)");
}

std::int64_t first_unmixed_epoch(const Mix& mix, const Duration& length) {
  if (mix.off_epochs == 0) return std::numeric_limits<std::int64_t>::max();
  const auto epochs = static_cast<std::int64_t>(std::ceil(length.value));
  return epochs - mix.off_epochs;
}

}  // namespace scaletrain::recipe
