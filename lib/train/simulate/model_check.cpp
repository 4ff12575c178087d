#include "lib/train/simulate/model_check.h"

#include <memory>
#include <utility>
#include <vector>

#include "lib/core/plan/mesh_plan.h"
#include "lib/dist/fake/network.h"
#include "lib/dist/group.h"
#include "lib/dist/mesh.h"
#include "lib/engine/engine.h"
#include "lib/engine/recompute.h"
#include "lib/engine/stages.h"
#include "lib/exchange/known_of_weights.h"
#include "lib/optim/optimizer.h"
#include "lib/recipe/ranks.h"
#include "lib/task/task.h"
#include "lib/train/build/initial_weights.h"
#include "lib/train/model/context_layout.h"
#include "lib/train/model/expert_layout.h"
#include "lib/train/model/learner.h"
#include "lib/train/model/tensor_layout.h"
#include "lib/train/simulate/job_plan.h"

namespace scaletrain::train {
namespace {

// Returns the recipe without devices and offload, so that any CPU can examine it.
recipe::Recipe without_devices(recipe::Recipe recipe) {
  recipe.parallel.balance = "parameters";  // the other one needs a run
  recipe.offload.reset();
  if (recipe.precision.name == "fp8") recipe.precision.options["simulate"] = true;
  return recipe;
}

void check_units_of(const recipe::Recipe& recipe, const dist::Mesh& mesh, Learner& learner,
                    task::Task& task) {
  const std::vector<units::Unit> units =
      units_of_part(recipe, mesh, {learner.model, learner.parts}, task);
  static_cast<void>(engine::recomputed_units(recipe.recompute, units));
  if (recipe.loss.chunk > 0) engine::require_tokens_alone(units.back());
  const int stages = recipe.parallel.pipeline_shape(1).stages();
  if (stages > 1) {
    engine::Stages(units, engine::parameter_costs(units, *learner.model), stages);
  }
}

}  // namespace

void check_model(recipe::Recipe recipe, int world_size, const nn::Factories& models) {
  const recipe::Recipe as_here = without_devices(std::move(recipe));
  if (as_here.model.weights) {
    check_tokenizer_at_url(as_here, exchange::files_to_look_at(as_here.model.weights->path));
  }
  const core::MeshPlan plan(world_size, as_here.parallel.mesh());
  const recipe::BatchPlan batch = recipe::plan_batch(as_here, world_size);
  const auto network =
      std::make_shared<dist::FakeNetwork>(dist::FakeJob{.rank = 0, .world_size = world_size});
  dist::Group world(network, at::kCPU);
  dist::Mesh mesh(world, plan);
  const std::unique_ptr<task::Task> task = task::make_task(as_here, at::kCPU);
  Learner learner =
      build_learner(as_here, at::kCPU, {.steps_per_epoch = 1000, .total_steps = 1000000},
                    batch.global, models, &mesh, Values::kBlank);
  share_sequences(mesh, *task);
  check_units_of(as_here, mesh, learner, *task);
  if (plan.experts() > 1) divide_experts(*learner.model, mesh);
  optim::check_optimizer(as_here.optimizer, learner.parameters());
  const bool divides_tokens = as_here.parallel.sequence || as_here.parallel.context > 1;
  if (divides_tokens && !as_here.batch.is_automatic()) {
    static_cast<void>(plan_job(as_here, world_size, models, {0}));
  }
}

}  // namespace scaletrain::train
