#include "app/worker/bench_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "app/worker/torch_error.h"
#include "lib/core/disk/disk.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/log.h"
#include "lib/core/text/command_line.h"
#include "lib/recipe/load.h"
#include "lib/train/simulate/fake_run.h"
#include "lib/train/tune/batch_search.h"
#include "lib/train/tune/step_costs.h"

namespace scaletrain::app {
namespace {

using Json = nlohmann::ordered_json;

Json memory_json(const units::MemoryUse& use) {
  Json bytes{{"total", use.total()}};
  for (std::size_t kind = 0; kind < units::kMemoryKinds; ++kind) {
    bytes[units::kMemoryKindNames.at(kind)] = use.bytes.at(kind);
  }
  return {{"peak_bytes", bytes}};
}

Json cost_json(const train::StepCost& cost, bool memory) {
  Json json = memory ? memory_json(cost.memory) : Json{{"step_s", cost.seconds}};
  if (cost.auto_per_device > 0) json["per_device"] = cost.auto_per_device;
  return json;
}

// A single rank whose peers are simulated.
struct Alone {
  dist::FakeJob job;
  double latency_us = 0, inside_gbs = 0, between_gbs = 0;

  void declare(CLI::App& app) {
    app.add_option("--ranks", job.world_size, "exposed: of the job");
    app.add_option("--ranks-per-node", job.ranks_per_node, "exposed: of each node");
    app.add_option("--rank", job.rank, "exposed: the one that runs");
    app.add_option("--latency-us", latency_us, "exposed: microseconds of a message");
    app.add_option("--inside-gbs", inside_gbs, "exposed: GB a second inside a node");
    app.add_option("--between-gbs", between_gbs, "exposed: GB a second between nodes");
  }

  Json measure(recipe::Recipe recipe, std::int64_t steps, const Models& models) {
    constexpr double kMicro = 1e-6, kGiga = 1e9;
    job.inside = {.latency_s = latency_us * kMicro, .bytes_per_s = inside_gbs * kGiga};
    job.between = {.latency_s = latency_us * kMicro, .bytes_per_s = between_gbs * kGiga};
    const train::FakeStep step =
        train::measure_fake(std::move(recipe), job, steps, models.factories);
    return {{"step_s", step.seconds},
            {"exchange_s", step.exchange_s},
            {"exposed_s", step.exposed_s},
            {"calls", step.calls},
            {"bytes", step.bytes}};
  }
};

}  // namespace

int run_bench(int argc, char** argv, const Models& models) {
  CLI::App app("Measure a recipe's steps as one rank.", "scaletrain-worker bench");
  std::string what, recipe_path, out;
  std::int64_t steps = 20;
  app.add_option("WHAT", what, "memory, speed or exposed")
      ->required()
      ->check(CLI::IsMember({"memory", "speed", "exposed"}));
  Alone alone;
  alone.declare(app);
  app.add_option("--recipe", recipe_path, "the resolved recipe")->required();
  app.add_option("--out", out, "where rank 0 writes the answer")->required();
  app.add_option("--steps", steps, "that are timed");
  if (!core::parse_command_line(app, {argv + 2, argv + argc})) return 0;

  const core::WorkerEnv env = core::read_worker_env();
  if (env.world_size > 1) core::set_log_prefix(fmt::format("[rank {}] ", env.rank));
  return run_translated(env.rank, [&] {
    recipe::Recipe recipe = recipe::load_recipe(recipe_path, {}, models.catalog);
    if (what == "exposed") {
      const Json answer = alone.measure(std::move(recipe), steps, models);
      core::write_durably(core::system_disk(), out, answer.dump() + "\n");
      return;
    }
    const bool memory = what == "memory";
    const train::BeforeData find_batch = [&](train::Run& run) {
      train::choose_per_device(run, env, models.factories);
    };
    const train::StepCost cost =
        memory ? train::measure_memory(std::move(recipe), env, models.factories, find_batch)
               : train::measure_speed(std::move(recipe), env, steps, models.factories, find_batch);
    const Json answer = cost_json(cost, memory);
    if (env.rank == 0) core::write_durably(core::system_disk(), out, answer.dump() + "\n");
  });
}

}  // namespace scaletrain::app
