// Mixes neighbours of a training batch, images and targets.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Mixup and cutmix of the samples at positions 2i and 2i+1 (lib/input/mix.h).
struct Mix {
  double mixup = 0;             // alpha; 0: no mixup
  double cutmix = 0;            // alpha; 0: no cutmix
  double probability = 1;       // share of the pairs
  double cutmix_share = 0.5;    // share of CutMix, if both are on
  std::int64_t off_epochs = 0;  // at the end of training, in which nothing is mixed
};

TypePtr describe(std::optional<Mix>& value);

// Pairs are mixed: `per_device` is even.
void check(const std::optional<Mix>& mix, std::int64_t per_device, const Node& tree,
           Problems& problems);

// Epochs can be counted from the end of a training of this length.
void check_off_epochs(const std::optional<Mix>& mix, const Duration& length, const Node& tree,
                      Problems& problems);

// The first epoch, from 0, in which nothing is mixed any more; the largest number there is where
// that never comes.
std::int64_t first_unmixed_epoch(const Mix& mix, const Duration& length);

}  // namespace scaletrain::recipe
