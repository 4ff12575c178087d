#include "launcher/batch_check.h"

#include "lib/core/error.h"

namespace scaletrain::launcher {

bool batch_fits(const recipe::Batch& batch, int ranks) {
  try {
    recipe::plan_batch(batch, ranks);
    return true;
  } catch (const core::RecipeError&) {
    return false;
  }
}

void check_batch(const recipe::Batch& batch, const Placement& placement) {
  if (!placement.elastic()) {
    recipe::plan_batch(batch, placement.world_size());
    return;
  }
  if (!batch.global) {
    throw core::UsageError("--nnodes",
                           "nodes may come and go, and the global batch would change with them",
                           R"(fix it in the recipe: "batch": {"global": N, "per_device": M})");
  }
  for (int nodes = placement.min_nodes; nodes <= placement.nnodes; ++nodes) {
    if (batch_fits(batch, nodes * placement.nproc)) return;
  }
  recipe::plan_batch(batch, placement.min_nodes * placement.nproc);
}

}  // namespace scaletrain::launcher
