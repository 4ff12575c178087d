// Checks a recipe's batch (lib/recipe/ranks.h) against the ranks of a job.
#pragma once

#include <string>

#include "launcher/place/placement.h"
#include "lib/recipe/ranks.h"
#include "lib/recipe/sections/batch.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Returns "64 = 8 x 4 x 2 ranks", or "x 2 groups of 4 ranks" if these share a model, with optional
// words after the first two numbers.
std::string batch_text(const recipe::BatchPlan& plan, int ranks, const char* per_device = "",
                       const char* accumulate = "");

bool batch_fits(const recipe::Recipe& recipe, int ranks);

// Checks the batch for every number of nodes that `placement` allows; if the number may change, the
// global batch must stay the same. Throws core::UsageError or core::RecipeError.
void check_batch(const recipe::Recipe& recipe, const Placement& placement);

}  // namespace scaletrain::launcher
