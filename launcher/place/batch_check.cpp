#include "launcher/place/batch_check.h"

#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

std::string batch_text(const recipe::BatchPlan& plan, int ranks, const char* per_device,
                       const char* accumulate) {
  const std::string grows =
      plan.ramp ? fmt::format(", from {} on by {} over {} samples", plan.ramp->start,
                              plan.ramp->increment, plan.ramp->samples)
                : "";
  if (plan.per_device == 0) {
    return fmt::format("{} over {}, in micro-batches that fit{}", plan.global,
                       core::counted(ranks, "rank"), grows);
  }
  const auto readers = static_cast<int>(plan.global / (plan.per_device * plan.accumulate));
  // Ranks that share a model read the same samples.
  const std::string who = readers == ranks
                              ? core::counted(ranks, "rank")
                              : fmt::format("{} of {}", core::counted(readers, "group"),
                                            core::counted(ranks / readers, "rank"));
  return fmt::format("{} = {}{} x {}{} x {}{}", plan.global, plan.per_device, per_device,
                     plan.accumulate, accumulate, who, grows);
}

bool batch_fits(const recipe::Recipe& recipe, int ranks) {
  try {
    plan_batch(recipe, ranks);
    return true;
  } catch (const core::RecipeError&) {
    return false;
  }
}

void check_batch(const recipe::Recipe& recipe, const Placement& placement) {
  if (!placement.elastic()) {
    plan_batch(recipe, placement.world_size());
    return;
  }
  if (!recipe.batch.global) {
    throw core::UsageError("--nnodes",
                           "nodes may come and go, and the global batch would change with them",
                           R"(fix it in the recipe: "batch": {"global": N, "per_device": M})");
  }
  for (int nodes = placement.min_nodes; nodes <= placement.nnodes; ++nodes) {
    if (batch_fits(recipe, nodes * placement.nproc)) return;
  }
  plan_batch(recipe, placement.min_nodes * placement.nproc);
}

}  // namespace scaletrain::launcher
