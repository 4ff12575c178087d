#include "lib/train/loop/start_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lib/core/version.h"
#include "lib/data/set/sample_set.h"
#include "lib/dist/device.h"
#include "lib/train/tune/memory_advice.h"

namespace scaletrain::train {
namespace {

// Shards or token files of a set; 0 for folders of images, which have none.
std::int64_t shards_of(const recipe::Source& source, const data::SampleSet& set) {
  const bool has_any = recipe::find_shard(source, [](const std::string&) { return true; });
  return has_any ? set.shard_count() : 0;
}

// A set of the streamed order is counted when it is read: not all of its shards are open yet.
observe::StartFacts::DataSet facts_of(const std::string& split, const recipe::Source& source,
                                      const data::SampleSet& set) {
  const std::vector<std::int64_t> known = set.known_sizes();
  const bool is_counted = std::find(known.begin(), known.end(), -1) == known.end();
  return {.split = split,
          .samples = is_counted ? std::optional(set.size()) : std::nullopt,
          .shards = shards_of(source, set)};
}

std::vector<observe::StartFacts::DataSet> sets_of(const Run& run) {
  std::vector<observe::StartFacts::DataSet> sets;
  const recipe::Data& data = run.recipe.data;
  if (run.sets.train.set) sets.push_back(facts_of("train", data.train, *run.sets.train.set));
  for (const auto& [split, open] : run.sets.held_out) {
    if (!open.set) continue;
    sets.push_back(facts_of(task::name_of(split, data), task::source_of(data, split), *open.set));
  }
  return sets;
}

std::vector<observe::StartFacts::Axis> layout_of(const core::MeshPlan& plan) {
  std::vector<observe::StartFacts::Axis> layout;
  const auto add = [&](const char* name, int size) {
    if (size > 1) layout.push_back({.name = name, .size = size});
  };
  add(core::axis_name(core::Axis::kPipe), plan.size(core::Axis::kPipe));
  const bool is_sharded = plan.size(core::Axis::kShard) > 1;
  add(is_sharded ? core::axis_name(core::Axis::kReplica) : "data", plan.size(core::Axis::kReplica));
  for (const core::Axis axis : {core::Axis::kShard, core::Axis::kContext, core::Axis::kTensor}) {
    add(core::axis_name(axis), plan.size(axis));
  }
  add("expert", plan.experts());
  return layout;
}

// "5 epochs", "1 step"
std::string duration_text(const recipe::Duration& duration) {
  const char* const unit = duration.unit == recipe::Duration::Unit::kEpochs ? "epoch" : "step";
  return fmt::format("{:g} {}{}", duration.value, unit, duration.value == 1 ? "" : "s");
}

// "warmup 5 epochs, cosine"; "" for a constant learning rate.
std::string schedule_of(const recipe::Schedule& schedule) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (schedule.warmup) add("warmup " + duration_text(*schedule.warmup));
  if (schedule.decay.name != "constant") add(schedule.decay.name);
  if (schedule.cooldown) add("cooldown " + duration_text(*schedule.cooldown));
  if (schedule.plateau) add("lower on a plateau");
  return text;
}

// As lib/train/simulate/job_plan.h counts them, from the tensors that are there already.
observe::StartFacts::Memory memory_of(const Run& run) {
  const StepMemory step = step_memory(run, {});
  observe::StartFacts::Memory memory{
      .parameters = step.parameters, .gradients = step.gradients, .optimizer = step.optimizer};
  if (!run.replicas->traits().has_outer_optimizer) return memory;
  for (const units::NamedParameter& owned : run.engine->owned()) {  // the outer optimizer's
    memory.optimizer += 2 * static_cast<std::int64_t>(owned.tensor.nbytes());
  }
  return memory;
}

}  // namespace

observe::StartFacts start_facts(const Run& run, const core::WorkerEnv& env) {
  const core::MeshPlan& plan = run.mesh->plan();
  const bool reads_tokens = recipe::reads_tokens(run.recipe.model);
  const bool has_vocabulary = reads_tokens && run.recipe.model.options.contains("vocab_size");
  return {.version = core::version(),
          .name = run.recipe.name,
          .run = run.recipe.output,
          .attempt = env.attempt,
          .step = run.state.step,
          .model = run.recipe.model.name,
          .trained = run.size.trained,
          .frozen = run.size.frozen,
          .weights = run.weights_loaded,
          .counted = reads_tokens ? "windows" : "samples",
          .sets = sets_of(run),
          .classes = reads_tokens ? 0 : run.recipe.model.num_classes,
          .vocab_size = has_vocabulary ? run.recipe.model.integer("vocab_size") : 0,
          .global_batch = run.batch.global,
          .per_device = run.batch.per_device,
          .accumulation = run.batch.accumulate,
          .data_parallel = plan.readers(),
          .steps_per_epoch = run.length.steps_per_epoch,
          .total_steps = run.length.total_steps,
          .optimizer = run.recipe.optimizer.name,
          .lr = run.recipe.optimizer.lr,
          .weight_decay = run.recipe.optimizer.weight_decay,
          .schedule = schedule_of(run.recipe.schedule),
          .precision = run.recipe.precision.name,
          .recomputes = run.recipe.recompute && !run.recipe.recompute->is_none(),
          .device = dist::device_name(run.group->device()),
          .ranks = env.world_size,
          .nodes = env.group_world_size,
          .layout = layout_of(plan),
          .memory = memory_of(run)};
}

}  // namespace scaletrain::train
