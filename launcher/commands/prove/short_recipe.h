// The recipe that `scaletrain prove` trains: shortened, with micro-batches that several numbers of
// ranks can share.
#pragma once

#include <cstdint>

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

struct ShortRecipe {
  recipe::Recipe recipe;
  int most_ranks = 1;  // data-parallel ranks that can share its global batch
};

// Returns `recipe` with `steps` steps, metrics of every step, one checkpoint at the end and one
// intra-op thread for each rank where the recipe sets none. It keeps the schedule and the EMA.
// Validation, SWA, early stopping, batch and image size ramp-ups are left out. The global batch
// stays; a micro-batch is the largest that up to `most_ranks` ranks (a power of two) can share.
// Throws core::UsageError if /batch/per_device is "auto".
ShortRecipe shorten(const recipe::Recipe& recipe, std::int64_t steps, int most_ranks);

// Returns "" if a run of `recipe` on `ranks` ranks can start, otherwise the reason of the refusal.
std::string refusal_of(const recipe::Recipe& recipe, int ranks);

}  // namespace scaletrain::launcher
