#include "app/worker/layout_command.h"

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "app/worker/torch_error.h"
#include "lib/core/disk/disk.h"
#include "lib/core/text/command_line.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/schedule.h"
#include "lib/recipe/load.h"
#include "lib/train/simulate/job_plan.h"
#include "lib/train/simulate/machine_speed.h"
#include "lib/train/simulate/step_memory.h"

namespace scaletrain::app {
namespace {

using Json = nlohmann::ordered_json;

const char* kind_name(dist::FakeKind kind) {
  switch (kind) {
    case dist::FakeKind::kAllReduce:
      return "all-reduce";
    case dist::FakeKind::kAllGather:
      return "all-gather";
    case dist::FakeKind::kReduceScatter:
      return "reduce-scatter";
    case dist::FakeKind::kAllToAll:
      return "all-to-all";
    case dist::FakeKind::kBroadcast:
      return "send";
    case dist::FakeKind::kGather:
      return "gather";
  }
  return "";
}

Json traffic_json(const train::Traffic& one, int ranks_per_node) {
  std::set<int> nodes;
  for (const int rank : one.ranks) nodes.insert(rank / ranks_per_node);
  const auto ranks = static_cast<int>(one.ranks.size());
  return {{"axis", one.axis},
          {"what", one.what},
          {"kind", kind_name(one.kind)},
          {"ranks", ranks},
          {"nodes", nodes.size()},
          {"calls", one.calls},
          {"bytes", one.bytes},
          {"sent_bytes", std::llround(dist::sent_bytes(one.kind, one.bytes, ranks))}};
}

Json rank_json(const train::RankPlan& rank, int ranks_per_node) {
  Json traffic = Json::array();
  for (const train::Traffic& one : rank.traffic) {
    traffic.push_back(traffic_json(one, ranks_per_node));
  }
  return {{"rank", rank.rank},
          {"units", {rank.units.front(), rank.units.back(), rank.units.size()}},
          {"held", rank.held},
          {"flops",
           {{"forward", rank.flops.forward},
            {"backward", rank.flops.backward},
            {"recomputed", rank.flops.recomputed}}},
          {"bytes",
           {{"parameters", rank.parameters},
            {"gathered", rank.gathered},
            {"gradients", rank.gradients},
            {"unreduced", std::max<std::int64_t>(0, rank.gradient_peak.backward - rank.gradients)},
            {"optimizer", rank.optimizer},
            {"averages", rank.averages},
            {"unsent", rank.unsent},
            {"activations", rank.activations}}},
          {"traffic", traffic}};
}

Json job_json(const train::JobPlan& job, int ranks_per_node) {
  using core::Axis;
  Json json;
  for (const Axis axis : {Axis::kPipe, Axis::kReplica, Axis::kShard, Axis::kTensor}) {
    json[core::axis_name(axis)] = job.mesh.size(axis);
  }
  json["per_device"] = job.batch.per_device;
  json["micro_batches"] = job.batch.accumulate;
  json["global_batch"] = job.batch.global;
  json["idle_share"] = job.idle_share;
  json["ranks"] = Json::array();
  for (const train::RankPlan& rank : job.ranks) {
    json["ranks"].push_back(rank_json(rank, ranks_per_node));
  }
  return json;
}

double state_bytes(const train::RankPlan& rank) {
  const std::int64_t gradients = std::max(rank.gradient_peak.backward, rank.gradient_peak.exchange);
  return static_cast<double>(rank.parameters + rank.gathered + gradients + rank.optimizer +
                             rank.averages);
}

// FLOPs of rank 0 for one micro-batch.
double micro_batch_flops(const train::JobPlan& job) {
  const train::StepFlops& flops = job.ranks.front().flops;
  return (flops.forward + flops.backward + flops.recomputed) /
         static_cast<double>(job.batch.accumulate);
}

// True if rank 0's steps can be taken here in about a minute and `most_bytes` of memory.
bool can_measure(const train::JobPlan& job, double most_bytes) {
  constexpr double kMostFlops = 2e12;
  return job.mesh.size(core::Axis::kPipe) == 1 && state_bytes(job.ranks.front()) <= most_bytes &&
         micro_batch_flops(job) <= kMostFlops;
}

// Peak bytes by kind of rank 0's step; null for a recipe that a CPU cannot run.
Json measured_json(const recipe::Recipe& recipe, int ranks_per_node, const train::JobPlan& job,
                   const Models& models) {
  try {
    constexpr double kFewFlops = 5e10;  // about a second on a core
    const dist::FakeJob rank_0{
        .rank = 0, .world_size = job.mesh.world_size(), .ranks_per_node = ranks_per_node};
    const auto measure = micro_batch_flops(job) <= kFewFlops ? train::measure_step_memory
                                                             : train::predict_step_memory;
    const train::StepMemoryUse use = measure(recipe, rank_0, models.factories);
    Json bytes;
    for (std::size_t kind = 0; kind < units::kMemoryKinds; ++kind) {
      bytes[units::kMemoryKindNames.at(kind)] = use.peak.bytes.at(kind);
    }
    return {{"was_replayed", use.was_replayed}, {"bytes", bytes}};
  } catch (const core::RecipeError&) {
    return nullptr;
  }
}

// Measures this machine, and a step of rank 0 if it can run here.
void add_measured(const recipe::Recipe& recipe, int ranks_per_node, double most_bytes,
                  const train::JobPlan& job, const Models& models, Json& json) {
  const bool is_bf16 = recipe.precision.name == "bf16";
  const train::MachineSpeed machine = train::measure_machine(is_bf16 ? at::kBFloat16 : at::kFloat);
  json["machine"] = {{"flops_per_s", machine.flops_per_s}, {"bytes_per_s", machine.bytes_per_s}};
  if (!can_measure(job, most_bytes)) return;
  json["measured"] = measured_json(recipe, ranks_per_node, job, models);
}

// Learning rates of the first step, the end of the warmup, the middle and the last step.
Json rates_json(const recipe::Recipe& recipe, std::int64_t global_batch,
                const optim::ScheduleSpan& span) {
  const optim::Schedule schedule(recipe.schedule, optim::scaled_lr(recipe.optimizer, global_batch),
                                 span);
  std::set<std::int64_t> steps{0, span.total_steps / 2, span.total_steps - 1};
  if (recipe.schedule.warmup) {
    const std::int64_t warmup =
        optim::duration_steps(*recipe.schedule.warmup, span.steps_per_epoch);
    steps.insert(std::clamp<std::int64_t>(warmup - 1, 0, span.total_steps - 1));
  }
  Json rates = Json::array();
  for (const std::int64_t step : steps) {
    rates.push_back({{"step", step + 1}, {"lr", schedule.lr(step)}});
  }
  return rates;
}

// True if the schedule's durations can be converted to steps.
bool knows_schedule(const recipe::Schedule& schedule, const optim::ScheduleSpan& span) {
  const bool counts_epochs =
      schedule.by == "epoch" ||
      (schedule.warmup && schedule.warmup->unit == recipe::Duration::Unit::kEpochs) ||
      (schedule.cooldown && schedule.cooldown->unit == recipe::Duration::Unit::kEpochs);
  static const std::set<std::string> decays{"cosine_restarts", "exponential", "multi_step", "step"};
  const bool is_in_epochs = counts_epochs || decays.contains(schedule.decay.name);
  return span.total_steps > 0 && (span.steps_per_epoch > 0 || !is_in_epochs);
}

}  // namespace

int run_layout(int argc, char** argv, const Models& models) {
  CLI::App app("Lay a recipe out on ranks that need not exist.", "scaletrain-worker layout");
  std::string recipe_path, out;
  int ranks = 1, ranks_per_node = 1, threads = 0;
  optim::ScheduleSpan span;
  double measure_mb = 0;
  app.add_option("--recipe", recipe_path, "the resolved recipe")->required();
  app.add_option("--ranks", ranks, "of the job")->required();
  app.add_option("--ranks-per-node", ranks_per_node, "of each node")->required();
  app.add_option("--measure-mb", measure_mb,
                 "also measure this machine, and a step whose state takes at most so many MB");
  app.add_option("--threads", threads, "of each rank, for what is measured");
  app.add_option("--steps", span.total_steps, "steps of the run, for learning rates at key steps");
  app.add_option("--steps-per-epoch", span.steps_per_epoch, "0: unknown");
  app.add_option("--out", out, "where the answer is written")->required();
  if (!core::parse_command_line(app, {argv + 2, argv + argc})) return 0;
  return run_translated(0, [&] {
    const recipe::Recipe recipe = recipe::load_recipe(recipe_path, {}, models.catalog);
    const train::JobPlan job = train::plan_job(recipe, ranks, models.factories);
    Json json = job_json(job, ranks_per_node);
    if (knows_schedule(recipe.schedule, span)) {
      json["rates"] = rates_json(recipe, job.batch.global, span);
    }
    if (threads > 0) at::set_num_threads(threads);
    if (measure_mb > 0) {
      constexpr double kMega = 1e6;
      add_measured(recipe, ranks_per_node, measure_mb * kMega, job, models, json);
    }
    core::write_durably(core::system_disk(), out, json.dump() + "\n");
  });
}

}  // namespace scaletrain::app
