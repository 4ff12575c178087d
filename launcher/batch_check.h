// Whether a recipe's batch and its order go into the ranks of a job.
#pragma once

#include "launcher/placement.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

bool batch_fits(const recipe::Recipe& recipe, int ranks);

// For every number of nodes that `placement` allows one must fit; where the number may change, the
// global batch must not. Throws core::UsageError or core::RecipeError.
void check_batch(const recipe::Recipe& recipe, const Placement& placement);

}  // namespace scaletrain::launcher
