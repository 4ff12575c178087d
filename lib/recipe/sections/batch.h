// How many samples at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Batch {
  std::int64_t per_device = 32;
  std::optional<std::int64_t> accumulate;  // either this
  std::optional<std::int64_t> global;      // or this
};

// One global batch, resolved for a number of ranks that read.
struct BatchPlan {
  std::int64_t per_device = 0, accumulate = 0, global = 0;
};

// The plan for `readers` data coordinates (lib/core/mesh_plan.h). Throws core::RecipeError
// ("/batch/global: ...") where the global batch is not a multiple of per_device * readers, naming
// the nearest sizes that would fit.
BatchPlan plan_batch(const Batch& batch, int readers);

TypePtr describe(Batch& value);
void check(const Batch& batch, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
