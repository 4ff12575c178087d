#include "lib/train/build/build.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/job/local_address.h"
#include "lib/core/plan/mesh_plan.h"
#include "lib/dist/device.h"
#include "lib/dist/replicate.h"
#include "lib/local_sgd/make_replicas.h"
#include "lib/parallel/compress/bucket.h"
#include "lib/recipe/apart.h"
#include "lib/train/build/initial_weights.h"
#include "lib/train/build/recompute_choice.h"
#include "lib/train/model/context_layout.h"
#include "lib/train/model/expert_layout.h"
#include "lib/train/model/mean_plan.h"
#include "lib/train/model/number_types.h"
#include "lib/train/model/tensor_layout.h"
#include "lib/train/rules/agreement.h"
#include "lib/train/rules/anomaly.h"
#include "lib/train/rules/cpu_threads.h"
#include "lib/train/rules/early_stopping.h"
#include "lib/train/rules/plateau.h"
#include "lib/train/rules/profile.h"
#include "lib/train/rules/ranking.h"
#include "lib/train/rules/reproducible.h"
#include "lib/train/run/sharded_optimizer.h"
#include "lib/train/run/stages.h"
#include "lib/train/run/state_shards.h"
#include "lib/train/state/rank_state.h"
#include "lib/train/state/replica_states.h"
#include "lib/train/state/resume.h"

namespace scaletrain::train {

namespace {

dist::CpuExchange cpu_exchange(const std::string& name) {
  if (name == "gloo") return dist::CpuExchange::kGloo;
  return name == "shm" ? dist::CpuExchange::kShm : dist::CpuExchange::kAuto;
}

}  // namespace

std::unique_ptr<dist::Group> join_ranks(const recipe::Recipe& recipe, const core::WorkerEnv& env,
                                        const std::optional<std::filesystem::path>& checkpoint,
                                        core::Beat& beat) {
  const at::Device device =
      dist::choose_device(recipe.device, {.rank = env.local_rank, .ranks = env.local_world_size});
  if (device.is_cuda()) dist::choose_kernels(recipe.deterministic);
  silence_profiler(device);
  beat.enter(core::Phase::kJoining);
  auto group = std::make_unique<dist::Group>(env, device, dist::patience_for_peers(env), beat,
                                             claims_on_joining(recipe, checkpoint),
                                             cpu_exchange(recipe.dist.cpu));
  beat.enter(core::Phase::kStarting);
  return group;
}

double grace_seconds(const core::WorkerEnv& env) {
  constexpr double kUsual = 30;
  return env.grace_s > 0 ? env.grace_s : kUsual;
}

void place(Run& run) {
  std::vector<units::Unit> units =
      units_of_part(run.recipe, *run.mesh, {run.learner.model, run.learner.parts}, *run.task);
  share_tokens(*run.learner.model, *run.mesh);
  run.pipeline = make_pipeline(run, units);
  run.placement = make_placement(run, units, !run.recipe.sync.is_rare());
  at::Tensor idle_input;
  if (run.mesh->plan().experts() > 1) idle_input = idle_tokens(*run.mesh);
  run.engine = std::make_unique<engine::Engine>(
      engine::EngineParts{.model = *run.learner.model,
                          .task = *run.task,
                          .precision = *run.learner.precision,
                          .placement = *run.placement,
                          .mesh = *run.mesh,
                          .pipeline = run.pipeline.get(),
                          .units = std::move(units),
                          .idle_input = idle_input},
      run.recipe.seed,
      engine::MemorySavings{.recompute = run.recipe.recompute,
                            .chunk = run.recipe.loss.chunk,
                            .offload = run.recipe.offload && run.recipe.offload->activations});
}

namespace {

// Compares the ranks' claims: a difference would silently train wrongly or break a collective.
void compare_with_others(Run& run, std::vector<dist::Claim> claims) {
  claim_model(claims, run.length.total_steps, *run.learner.model, run.learner.parts);
  run.beat.enter(core::Phase::kJoining);
  run.group->agree("parts", claims);
  run.beat.enter(core::Phase::kStarting);
}

local_sgd::Fragments fragments_of(const Run& run) {
  const std::vector<units::NamedParameter> model = run.learner.parameters();
  std::map<std::string, std::int64_t> sets;
  std::int64_t count = 0;
  if (run.mesh->plan().experts() > 1) {
    for (const auto& [name, place] : places_of_experts(*run.learner.model, 1)) sets[name] = count;
    ++count;
  }
  // Two stages share each by itself.
  for (const units::NamedParameter& parameter : model) {
    if (run.pipeline && run.pipeline->places_of(parameter.name).size() > 1) {
      sets[parameter.name] = count++;
    }
  }
  return local_sgd::divide_in_fragments(model, run.recipe.sync.fragments, sets);
}

std::unique_ptr<local_sgd::Replicas> make_replicas(Run& run, const core::WorkerEnv& env) {
  const std::optional<recipe::Compress>& compress = run.recipe.compress;
  local_sgd::LocalSgdOptions options{
      .sync = run.recipe.sync,
      .total_steps = run.length.total_steps,
      .rounded_to = compress ? parallel::cast_type(*compress) : std::nullopt,
      .decoupled = recipe::replicas_are_apart(run.recipe),
      .beat = run.beat,
      .grace_s = grace_seconds(env),
      .states = [&run](local_sgd::StateRequest request) { return local_states(run, request); }};
  return local_sgd::make_replicas(std::move(options), run.engine->owned(), fragments_of(run),
                                  *run.mesh);
}

// Number of data-parallel ranks whose buffers a checkpoint has; its mesh is pipeline, replica,
// shard, ...
std::int64_t readers_of(const format::TrainState& state) {
  return state.mesh.size() < 3 ? state.world_size : state.mesh[1] * state.mesh[2];
}

// Fills the model with values from `resume` or fresh ones, in the memory that the parallel strategy
// has assigned.
void fill(Run& run, const std::optional<std::filesystem::path>& resume, bool same_ranks) {
  const auto start = [&run, same_ranks] {
    // Another placement of experts changes the buckets of gradients.
    const bool same_layout = same_ranks && run.state.expert == run.mesh->plan().experts();
    run.placement->start(same_layout ? run.state.bucket_layout : parallel::BucketLayout{});
    drop_other_stages(run);
  };
  if (resume && is_sharded(run)) {  // each rank reads its shards
    start();
    return restore(run, *resume);
  }
  if (resume) {
    restore(run, *resume);
    return start();
  }
  take_weights(run);
  dist::replicate(run.learner.parts.empty() ? *run.group : run.mesh->gradients(),
                  values(run.learner.tensors()), "initial model");
  start();
}

}  // namespace

std::unique_ptr<Run> build_run(recipe::Recipe recipe, const core::WorkerEnv& env,
                               const std::optional<std::filesystem::path>& resume, core::Beat beat,
                               const nn::Factories& models,
                               const std::function<void(Run&)>& before_data,
                               const std::function<void()>& before_decoupling) {
  auto built = std::make_unique<Run>();
  Run& run = *built;
  run.recipe = std::move(recipe);
  run.beat = std::move(beat);
  const core::MeshPlan plan(env.world_size, run.recipe.parallel.mesh());
  start_cpu_threads(run.recipe.threads);
  run.group = join_ranks(run.recipe, env, resume, run.beat);
  run.mesh = std::make_unique<dist::Mesh>(*run.group, plan);
  const at::Device device = run.group->device();
  format::ClassNames classes;
  if (resume) {
    run.state = state_of_rank_0(*run.group, *resume);
    classes = classes_of_rank_0(*run.group, *resume);
  }
  if (before_data) before_data(run);
  if (run.recipe.batch.is_automatic()) {
    throw core::RecipeError("/batch/per_device", R"("auto" is found when training begins)",
                            "use a number: --set batch.per_device=N");
  }
  run.batch = recipe::divide_batch(run.recipe.batch, plan.readers());
  recipe::check_micro_batches(run.recipe.parallel, run.batch);

  std::vector<dist::Claim> claims;
  run.task = task::make_task(run.recipe, device);
  // The loader's threads decode while the rest is built.
  run.sets = open_sets(run.recipe, env, plan, device, *run.task, run.state, classes, claims,
                       recipe::replicas_are_apart(run.recipe));
  run.length = plan_length(run.recipe.length, run.sets.train.stream->steps_per_epoch(), run.state,
                           run.sets.train.stream->growing());
  run.beat.set_total_steps(run.length.total_steps);
  run.learner =
      build_learner(run.recipe, device, run.length, run.batch.global, models, run.mesh.get());
  run.size = run.learner.size();
  compare_with_others(run, std::move(claims));

  share_sequences(*run.mesh, *run.task);
  place(run);
  run.learner.optimizer = make_optimizer(run);
  run.replicas = make_replicas(run, env);
  const bool same_ranks = run.state.world_size == run.group->world_size();
  fill(run, resume, same_ranks);
  const bool same_buffers = same_ranks && readers_of(run.state) == plan.readers();
  if (resume && same_buffers) restore_ranks(*run.mesh, run.learner.buffers(), *resume);
  check_means(run.recipe, run.learner.buffers());
  for (optim::MeanPlan& mean : plan_means(run.recipe, run.length)) {
    run.means.push_back(std::make_unique<optim::Mean>(std::move(mean), model_shards(run)));
  }
  restore_means(run, resume, same_buffers);
  run.replicas->start();
  if (resume) restore_rank_state(run, *resume);

  choose_recomputed(run);

  const format::TrainState was = run.state;
  describe_run(run);
  if (resume && run.group->rank() == 0) warn_of_differences(run, was);
  run.replicas->decouple(
      run.state.step, [&env] { return core::local_address(env); }, before_decoupling);
  return built;
}

void describe_run(Run& run) {
  const core::MeshPlan& plan = run.mesh->plan();
  describe_process(run.state, *run.group);
  run.state.mesh = mesh_numbers(plan);
  run.state.expert = plan.experts();
  run.sets.training_set.describe(run.state);
  run.state.global_batch = run.batch.global;
  run.state.batch_ramp = numbers_of(run.batch.ramp);
  keep_count_of(run.recipe, run.state);
  keep_plateau_of(run.recipe, run.state);
  keep_anomalies_of(run.recipe.anomaly, run.state);
  run.state.best_by = looked_at(run.recipe, run.recipe.checkpoint.best.metric);
}

StepParts step_parts(Run& run, std::function<void()> before_update) {
  std::vector<optim::Mean*> means;
  means.reserve(run.means.size());
  for (const auto& mean : run.means) means.push_back(mean.get());
  return {.mesh = *run.mesh,
          .beat = run.beat,
          .batches = *run.sets.train.stream,
          .task = *run.task,
          .engine = *run.engine,
          .precision = *run.learner.precision,
          .optimizer = *run.learner.optimizer,
          .buffers = run.learner.model->buffers(),
          .batch = run.batch,
          .clip = run.recipe.clip,
          .anomaly = run.recipe.anomaly,
          .shards = shards_of(run),
          .sam = run.recipe.sam,
          .means = std::move(means),
          .replicas = *run.replicas,
          .before_update = std::move(before_update)};
}

}  // namespace scaletrain::train
