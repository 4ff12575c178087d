#include "lib/train/run/sharded_optimizer.h"

#include <utility>

#include "lib/engine/tensor_owners.h"
#include "lib/recipe/sections/whole_tensors.h"
#include "lib/train/model/number_types.h"

namespace scaletrain::train {
namespace {

// Returns the trained parameters with the shards of this rank.
std::vector<units::NamedParameter> trained_parts(const Run& run) {
  std::vector<units::NamedParameter> trained;
  for (const units::NamedParameter& part : run.placement->sharded_parameters()) {
    if (part.tensor.requires_grad()) trained.push_back(part);
  }
  return trained;
}

}  // namespace

std::unique_ptr<optim::Optimizer> make_optimizer(const Run& run) {
  optim::check_optimizer(run.recipe.optimizer, run.learner.parameters());
  const bool has_parts = run.mesh->size(core::Axis::kShard) > 1;
  if (!has_parts || !recipe::needs_whole_tensors(run.recipe.optimizer)) {
    return make_optimizer(run.recipe, run.engine->owned());
  }
  return engine::with_owners(
      [&run](std::vector<units::NamedParameter> owned) {
        return make_optimizer(run.recipe, std::move(owned));
      },
      trained_parts(run), run.mesh->group(core::Axis::kShard));
}

optim::ShardedParameters shards_of(const Run& run) {
  if (run.mesh->size(core::Axis::kShard) == 1) return {};
  return {.parts = trained_parts(run), .sum = [&run](const at::Tensor& values) {
            run.mesh->group(core::Axis::kShard).all_reduce_sum(values, "norms of units").wait();
          }};
}

}  // namespace scaletrain::train
