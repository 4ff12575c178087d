#include "lib/recipe/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/core/error.h"
#include "lib/core/plan/batch_sizes.h"
#include "lib/core/plan/mesh_plan.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {

int ranks_of_copy(const Recipe& recipe) {
  const core::MeshSizes mesh = recipe.parallel.mesh();
  // The experts are distributed over several replicas of the other layers.
  const int replicas = mesh.replica.value_or(std::max(1, mesh.expert / mesh.shard));
  return mesh.pipe * replicas * mesh.shard * mesh.context * mesh.tensor;
}

BatchPlan plan_batch(const Recipe& recipe, int ranks) {
  const int readers = core::MeshPlan(ranks, recipe.parallel.mesh()).readers();
  const BatchPlan plan = divide_batch(recipe.batch, readers);
  if (recipe.batch.is_automatic()) static_cast<void>(batch_candidates(recipe, readers));
  check_micro_batches(recipe.parallel, plan);
  if (recipe.data.order == "streamed") check_lanes(recipe.data.lanes, readers);
  return plan;
}

std::vector<std::int64_t> batch_candidates(const Recipe& recipe, int readers) {
  const std::optional<core::BatchRamp>& ramp = recipe.batch.ramp;
  const std::int64_t of_a_rank = (ramp ? part_of_all(*ramp) : *recipe.batch.global) / readers;
  std::vector<std::int64_t> result;
  const bool needs_two = needs_two_samples(recipe.model, recipe.data.image_size);
  const auto add = [&](std::int64_t samples) {
    if ((recipe.mix && samples % 2 != 0) || (samples == 1 && needs_two)) return;
    result.push_back(samples);
  };
  for (std::int64_t samples = 1; samples * samples <= of_a_rank; ++samples) {
    if (of_a_rank % samples != 0) continue;
    add(samples);
    if (samples * samples != of_a_rank) add(of_a_rank / samples);
  }
  std::sort(result.begin(), result.end());
  if (!result.empty()) return result;
  throw core::RecipeError(
      "/batch/global",
      fmt::format("{} gives {} ranks no micro-batch that the model can train on, or of pairs",
                  *recipe.batch.global, readers),
      fmt::format("use a multiple of {}", 2 * readers));
}

}  // namespace scaletrain::recipe
