#include "lib/train/build/evaluation_run.h"

#include <utility>
#include <vector>

#include "lib/checkpoint/shard_reader.h"
#include "lib/core/plan/mesh_plan.h"
#include "lib/dist/device.h"
#include "lib/format/checkpoint/checkpoint_weights.h"
#include "lib/train/build/build.h"
#include "lib/train/model/number_types.h"
#include "lib/train/model/tensor_layout.h"
#include "lib/train/rules/agreement.h"
#include "lib/train/rules/cpu_threads.h"
#include "lib/train/state/resume.h"

namespace scaletrain::train {
namespace {

Learner make_learner(const recipe::Recipe& recipe, at::Device device, const nn::Factories& models,
                     const dist::Mesh& mesh) {
  Learner learner;
  PartOfModel part = make_part(recipe, &mesh, models);
  learner.model = std::move(part.model);
  learner.parts = std::move(part.parts);
  learner.model->to(device);
  learner.model->eval();
  learner.precision =
      precision::make_precision(recipe.precision, {device, dist::compute_capability(device)});
  convert_weights(*learner.model, *learner.precision);
  set_linear_products(*learner.model, *learner.precision, recipe.precision);
  return learner;
}

void load_weights(Run& run, const StoredModel& stored) {
  checkpoint::GroupReader(
      *run.group, checkpoint::ReadBy::kRank0,
      [&stored] { return format::weights_file(stored.checkpoint, stored.weights); },
      run.learner.shards(), {.casts_floats = true})
      .read([&run] { run.beat.enter(core::Phase::kStarting); });
}

}  // namespace

std::unique_ptr<Run> build_evaluation(recipe::Recipe recipe, const core::WorkerEnv& env,
                                      const StoredModel& stored, std::optional<task::Split> split,
                                      const nn::Factories& models) {
  auto built = std::make_unique<Run>();
  Run& run = *built;
  run.recipe = std::move(recipe);
  // Each rank holds the full model, whatever number of ranks trained it.
  run.recipe.parallel.pipeline = 1;
  run.recipe.parallel.shard = 1;
  run.recipe.parallel.context = 1;
  run.recipe.parallel.expert = 1;
  run.recipe.parallel.replica.reset();
  // Tensor parallelism stays if the number of ranks allows it.
  if (env.world_size % run.recipe.parallel.tensor != 0) run.recipe.parallel = {};
  const core::MeshPlan plan(env.world_size, run.recipe.parallel.mesh());
  // A run whose automatic batch size was not found has trained nothing.
  if (run.recipe.batch.is_automatic()) run.recipe.batch.per_device = recipe::Batch().per_device;
  const std::int64_t per_device = run.recipe.batch.per_device;
  run.batch = {.per_device = per_device, .accumulate = 1, .global = per_device * plan.readers()};
  start_cpu_threads(run.recipe.threads);
  run.group = join_ranks(run.recipe, env, stored.checkpoint, run.beat);
  run.mesh = std::make_unique<dist::Mesh>(*run.group, plan);
  const at::Device device = run.group->device();
  run.state = state_of_rank_0(*run.group, stored.checkpoint);

  std::vector<dist::Claim> claims;
  run.task = task::make_task(run.recipe, device);
  if (split) {
    run.sets = open_held_out(run.recipe, env, plan, device, *run.task, *split,
                             classes_of_rank_0(*run.group, stored.checkpoint), claims);
  }
  run.learner = make_learner(run.recipe, device, models, *run.mesh);
  claim_model(claims, run.state.step, *run.learner.model, run.learner.parts);
  run.group->agree("parts", claims);
  place(run);
  load_weights(run, stored);
  return built;
}

}  // namespace scaletrain::train
