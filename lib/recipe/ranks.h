// Number of ranks that a recipe needs, and its batch plan for a number of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/recipe/sections/batch.h"

namespace scaletrain::recipe {

struct Recipe;

// Returns the smallest number of ranks that can hold the model: those of one replica, or of the
// replicas that share the experts.
int ranks_of_copy(const Recipe& recipe);

// Returns the batch plan for `ranks` ranks. Throws core::RecipeError if they do not fit the mesh
// (lib/core/plan/mesh_plan.h), the global batch, the micro-batches of a pipeline or the lanes of a
// streamed order.
BatchPlan plan_batch(const Recipe& recipe, int ranks);

// Returns the micro-batch sizes, ascending, that can make up the global batch of `recipe`, whose
// per_device is "auto", with `readers` data-parallel ranks. Throws core::RecipeError if there is
// none.
std::vector<std::int64_t> batch_candidates(const Recipe& recipe, int readers);

}  // namespace scaletrain::recipe
