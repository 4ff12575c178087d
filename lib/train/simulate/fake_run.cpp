#include "lib/train/simulate/fake_run.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/train/build/build.h"
#include "lib/train/model/number_types.h"
#include "lib/train/simulate/blank_batch.h"

namespace scaletrain::train {
namespace {

using core::Axis;

void check_place(const Run& run) {
  const bool is_first = run.mesh->coordinate(Axis::kPipe) == 0;
  const bool has_one = run.recipe.parallel.pipeline_shape(1).chunks == 1;
  if (is_first && has_one) return;
  throw core::RecipeError("/parallel/pipeline",
                          "what a stage is sent has shapes that only the stage before knows",
                          "take a rank of the first stage, and no chunks");
}

struct FakeRun {
  std::unique_ptr<Run> run;
  std::optional<units::TokenCut> cut;  // context parallelism
};

FakeRun build(recipe::Recipe recipe, std::shared_ptr<dist::FakeNetwork> network,
              const nn::Factories& models) {
  auto run = std::make_unique<Run>();
  run->recipe = std::move(recipe);
  run->recipe.parallel.balance = "parameters";
  if (run->recipe.offload) run->recipe.offload->optimizer_folder.clear();  // no disk is measured
  const core::MeshPlan plan(network->job().world_size, run->recipe.parallel.mesh());
  run->group = std::make_unique<dist::Group>(std::move(network), at::kCPU);
  run->mesh = std::make_unique<dist::Mesh>(*run->group, plan);
  check_place(*run);
  run->batch = recipe::divide_batch(run->recipe.batch, plan.readers());
  recipe::check_micro_batches(run->recipe.parallel, run->batch);
  run->task = task::make_task(run->recipe, at::kCPU);
  run->learner =
      build_learner(run->recipe, at::kCPU, {.steps_per_epoch = 1000, .total_steps = 1000000},
                    run->batch.global, models, run->mesh.get(), Values::kBlank);
  run->learner.model->train();
  std::optional<units::TokenCut> cut = open_token_cut(*run->mesh);
  place(*run);
  run->learner.optimizer = make_optimizer(run->recipe, run->engine->owned());
  run->placement->start({});
  return {.run = std::move(run), .cut = std::move(cut)};
}

void take_step(const FakeRun& fake, std::int64_t number) {
  Run& run = *fake.run;
  BlankBatches batches(run, fake.cut);
  run.engine->run(number, batches, at::full({}, 1.0), [](const at::Tensor&) {});
  run.engine->squared_norm();
  run.learner.optimizer->step(run.lr());
  run.engine->weights_updated();
}

FakeStep sums_of(double seconds, std::span<const dist::FakeCall> calls) {
  FakeStep one{.seconds = seconds, .exposed_s = exposed_seconds(calls)};
  for (const dist::FakeCall& call : calls) {
    one.exchange_s += call.seconds;
    one.bytes += call.bytes;
    ++one.calls;
  }
  return one;
}

}  // namespace

double exposed_seconds(std::span<const dist::FakeCall> calls) {
  struct OfGroup {
    double waited = 0;
    const dist::FakeCall* last = nullptr;
  };
  std::map<std::vector<int>, OfGroup> groups;
  for (const dist::FakeCall& call : calls) {
    OfGroup& group = groups[call.ranks];
    group.waited += call.waited_s;
    group.last = &call;
  }
  double seconds = 0;
  for (const auto& [ranks, group] : groups) {
    const auto rest = std::chrono::duration<double>(group.last->done - group.last->asked);
    seconds += group.waited > 0 ? group.waited : rest.count();
  }
  return seconds;
}

FakeStep measure_fake(recipe::Recipe recipe, const dist::FakeJob& job, std::int64_t steps,
                      const nn::Factories& models) {
  const auto network = std::make_shared<dist::FakeNetwork>(job);
  const FakeRun fake = build(std::move(recipe), network, models);
  take_step(fake, 0);
  std::vector<double> seconds;
  std::vector<std::size_t> begin{network->count()};  // first call of each step
  for (std::int64_t step = 1; step <= steps; ++step) {
    const core::SteadyTime start = core::now();
    take_step(fake, step);
    seconds.push_back(core::seconds_since(start));
    begin.push_back(network->count());
  }
  fake.run->engine->settle();
  // Now only, as a step waits for what the one before has asked for.
  const std::vector<dist::FakeCall> calls = network->calls();
  std::vector<FakeStep> all;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const auto its = std::span(calls).subspan(begin[i], begin[i + 1] - begin[i]);
    all.push_back(sums_of(seconds[i], its));
  }
  fake.run->mesh->end("the measurement");
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end(),
                   [](const FakeStep& a, const FakeStep& b) { return a.seconds < b.seconds; });
  return *middle;
}

}  // namespace scaletrain::train
