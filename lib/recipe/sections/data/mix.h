// Mixup and CutMix.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Mixes the samples at positions 2i and 2i+1 (lib/input/mix.h).
struct Mix {
  double mixup = 0;             // alpha; 0: no mixup
  double cutmix = 0;            // alpha; 0: no cutmix
  double probability = 1;       // share of pairs that are mixed
  double cutmix_share = 0.5;    // share of CutMix, if both are on
  std::int64_t off_epochs = 0;  // epochs at the end of training without mixing
};

TypePtr describe(std::optional<Mix>& value);

// Checks that `per_device` is even, since pairs are mixed.
void check(const std::optional<Mix>& mix, std::int64_t per_device, const Node& tree,
           Problems& problems);

// Checks that the length of training allows counting epochs from its end.
void check_off_epochs(const std::optional<Mix>& mix, const Duration& length, const Node& tree,
                      Problems& problems);

// Returns the first epoch, from 0, without mixing; the largest integer if there is none.
std::int64_t first_unmixed_epoch(const Mix& mix, const Duration& length);

}  // namespace scaletrain::recipe
