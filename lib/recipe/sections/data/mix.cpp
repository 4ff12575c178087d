#include "lib/recipe/sections/data/mix.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Mix>& value) {
  return optional(value, [](Mix& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("mixup", number(inner.mixup, from(0).to(100)),
              "Mixup alpha: parameter of the Beta distribution that draws blending weights. "
              "Default: 0, off. For example 0.2.")
        .add("cutmix", number(inner.cutmix, from(0).to(100)),
             "CutMix alpha: parameter of the Beta distribution that draws box sizes. Default: 0, "
             "off. For example 1.0.")
        .add("probability", number(inner.probability, from(0).to(1)),
             "Probability that a pair of images is mixed. Default: 1.")
        .add("cutmix_share", number(inner.cutmix_share, from(0).to(1)),
             "Probability of CutMix instead of Mixup if both are on. Default: 0.5.")
        .add("off_epochs", integer(inner.off_epochs, from(0).to(kMostCount)),
             "Number of final epochs without Mixup and CutMix. Default: 0. Needs a training length "
             "in epochs.")
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
