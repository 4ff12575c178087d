#include "lib/train/simulate/fake_rank.h"

#include <ATen/ops/full.h>

#include <utility>

#include "lib/core/error.h"
#include "lib/train/build/build.h"
#include "lib/train/model/context_layout.h"
#include "lib/train/model/mean_plan.h"
#include "lib/train/model/number_types.h"
#include "lib/train/run/state_shards.h"
#include "lib/train/simulate/blank_batch.h"

namespace scaletrain::train {
namespace {

using core::Axis;

void check_place(const Run& run) {
  const bool is_first = run.mesh->coordinate(Axis::kPipe) == 0;
  const bool has_one = run.recipe.parallel.pipeline_shape(1).chunks == 1;
  if (is_first && has_one) return;
  throw core::RecipeError(
      "/parallel/pipeline",
      "the shapes of a later stage's inputs are known only to the stage before",
      "choose a rank of the first stage, and a schedule other than interleaved");
}

}  // namespace

FakeRank::FakeRank(recipe::Recipe recipe, std::shared_ptr<dist::FakeNetwork> network,
                   const nn::Factories& models)
    : run_(std::make_unique<Run>()) {
  run_->recipe = std::move(recipe);
  run_->recipe.parallel.balance = "parameters";
  if (run_->recipe.offload) run_->recipe.offload->optimizer_folder.clear();  // no disk is measured
  const core::MeshPlan plan(network->job().world_size, run_->recipe.parallel.mesh());
  run_->group = std::make_unique<dist::Group>(std::move(network), at::kCPU);
  run_->mesh = std::make_unique<dist::Mesh>(*run_->group, plan);
  check_place(*run_);
  run_->batch = recipe::divide_batch(run_->recipe.batch, plan.readers());
  recipe::check_micro_batches(run_->recipe.parallel, run_->batch);
  run_->task = task::make_task(run_->recipe, at::kCPU);
  run_->learner =
      build_learner(run_->recipe, at::kCPU, {.steps_per_epoch = 1000, .total_steps = 1000000},
                    run_->batch.global, models, run_->mesh.get(), Values::kBlank);
  run_->learner.model->train();
  cut_ = open_token_cut(*run_->mesh);
  place(*run_);
  run_->learner.optimizer = make_optimizer(run_->recipe, run_->engine->owned());
  run_->placement->start({});
  for (optim::MeanPlan& mean : plan_means(run_->recipe, run_->length)) {
    run_->means.push_back(std::make_unique<optim::Mean>(std::move(mean), model_shards(*run_)));
  }
}

void FakeRank::take_step(std::int64_t number) {
  BlankBatches batches(*run_, cut_);
  run_->engine->run(number, batches, at::full({}, 1.0), [](const at::Tensor&) {});
  run_->engine->squared_norm();
  run_->learner.optimizer->step(run_->lr());
  run_->engine->weights_updated();
}

}  // namespace scaletrain::train
