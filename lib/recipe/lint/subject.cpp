#include "lib/recipe/lint/subject.h"

#include "lib/core/plan/mesh_plan.h"
#include "lib/recipe/ranks.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {

std::optional<double> LintSubject::steps(const Duration& duration) const {
  if (duration.unit == Duration::Unit::kSteps) return duration.value;
  if (duration.unit == Duration::Unit::kMinutes || global == 0 || samples < global)
    return std::nullopt;
  return duration.value * static_cast<double>(samples / global);
}

std::optional<double> LintSubject::epochs(const Duration& duration) const {
  if (duration.unit == Duration::Unit::kEpochs) return duration.value;
  if (duration.unit == Duration::Unit::kMinutes || global == 0 || samples < global)
    return std::nullopt;
  return duration.value / static_cast<double>(samples / global);
}

bool LintSubject::exceeds_run(const Duration& duration, bool or_equal) const {
  const Duration& run = recipe.length;
  std::optional<double> one = steps(duration), other = steps(run);
  if (duration.unit == run.unit) {
    one = duration.value;
    other = run.value;
  }
  if (!one || !other) return false;
  return or_equal ? *one >= *other : *one > *other;
}

LintSubject lint_subject(const Recipe& recipe, const LintFacts& facts) {
  const int ranks = facts.ranks > 0 ? facts.ranks : ranks_of_copy(recipe);
  const BatchPlan plan = plan_batch(recipe, ranks);
  return {.recipe = recipe,
          .readers = core::MeshPlan(ranks, recipe.parallel.mesh()).readers(),
          .per_device = plan.per_device,
          .global = plan.global,
          .samples = facts.samples};
}

}  // namespace scaletrain::recipe
