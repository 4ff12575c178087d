#include "launcher/batch_check.h"

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

void check_ranks(const recipe::Recipe& recipe, int ranks) {
  recipe::plan_batch(recipe.batch, ranks);
  if (recipe.data.order == "streamed") recipe::check_lanes(recipe.data.lanes, ranks);
}

}  // namespace

bool batch_fits(const recipe::Recipe& recipe, int ranks) {
  try {
    check_ranks(recipe, ranks);
    return true;
  } catch (const core::RecipeError&) {
    return false;
  }
}

void check_batch(const recipe::Recipe& recipe, const Placement& placement) {
  if (!placement.elastic()) return check_ranks(recipe, placement.world_size());
  if (!recipe.batch.global) {
    throw core::UsageError("--nnodes",
                           "nodes may come and go, and the global batch would change with them",
                           R"(fix it in the recipe: "batch": {"global": N, "per_device": M})");
  }
  for (int nodes = placement.min_nodes; nodes <= placement.nnodes; ++nodes) {
    if (batch_fits(recipe, nodes * placement.nproc)) return;
  }
  check_ranks(recipe, placement.min_nodes * placement.nproc);
}

}  // namespace scaletrain::launcher
