// A recipe's batch (lib/recipe/ranks.h) in the ranks of a job, for a person.
#pragma once

#include <string>

#include "launcher/place/placement.h"
#include "lib/recipe/ranks.h"
#include "lib/recipe/sections/batch.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// "64 = 8 x 4 x 2 ranks", or "x 2 groups of 4 ranks" where these share a model, with words behind
// the first two.
std::string batch_text(const recipe::BatchPlan& plan, int ranks, const char* per_device = "",
                       const char* accumulate = "");

bool batch_fits(const recipe::Recipe& recipe, int ranks);

// For every number of nodes that `placement` allows one must fit; where the number may change, the
// global batch must not. Throws core::UsageError or core::RecipeError.
void check_batch(const recipe::Recipe& recipe, const Placement& placement);

}  // namespace scaletrain::launcher
