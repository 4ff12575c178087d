// A recipe on the ranks of a job: how many it needs, and the one place where its batch is planned.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/recipe/sections/batch.h"

namespace scaletrain::recipe {

struct Recipe;

// Returns the least number of ranks that hold the model: those of one copy, or of as many copies as
// hold the experts together.
int ranks_of_copy(const Recipe& recipe);

// Returns the batch of `ranks` ranks, of which the data coordinates (lib/core/plan/mesh_plan.h)
// share it. Throws core::RecipeError where the mesh, the batch, its micro-batches in a pipeline or
// the lanes of a streamed order do not go into them.
BatchPlan plan_batch(const Recipe& recipe, int ranks);

// Returns the numbers of samples, ascending, of which micro-steps of `readers` data coordinates can
// make up the global batch of `recipe`, whose per_device is "auto": those that it can train on.
// Throws core::RecipeError where there is none.
std::vector<std::int64_t> batch_candidates(const Recipe& recipe, int readers);

}  // namespace scaletrain::recipe
