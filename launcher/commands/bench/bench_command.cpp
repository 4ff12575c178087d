#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/commands/bench/costs.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/worker_ranks.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/remote_sets.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/place/batch_check.h"
#include "launcher/place/placement.h"
#include "launcher/platform/captured.h"
#include "launcher/platform/scratch_folder.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/json_text.h"
#include "lib/recipe/load.h"
#include "lib/recipe/ranks.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

struct BenchRequest {
  std::string what, nproc;  // "": as many ranks as a copy of the model needs
  // Options of "exposed".
  int nnodes = 1, rank = 0;
  double latency_us = 10, inside_gbs = 100, between_gbs = 10;
  std::int64_t steps = 20;
  bool json = false;
  LaunchOptions recipe;  // path, --set, --worker
};

// Runs the worker on the recipe with one technique; `what`: "memory", "speed". Throws core::Error
// if a signal stopped it.
Cost measure(const BenchRequest& asked, const std::string& what, const std::string& worker,
             const recipe::Recipe& recipe, recipe::Technique technique,
             const ScratchFolder& scratch) {
  const recipe::Recipe changed = recipe::parse_recipe(recipe::to_json(recipe), recipe.name,
                                                      technique.overrides, recipe.model.catalog);
  const fs::path input = scratch.file("recipe.json"), output = scratch.file("answer.json");
  fs::remove(output);
  std::ofstream(input) << recipe::to_json(changed);
  Cost cost{.technique = std::move(technique), .answer = {}};
  const RanksEnd end = run_worker_ranks(worker, asked.nproc,
                                        {"bench", what, "--recipe", input.string(), "--out",
                                         output.string(), "--steps", std::to_string(asked.steps)});
  if (end.stop_signal != 0) throw_stopped("bench", end.stop_signal);
  cost.exit_status = end.status;
  if (cost.exit_status == 0) {
    std::ifstream stream(output);
    cost.answer = nlohmann::ordered_json::parse(stream);
  }
  return cost;
}

// One rank of a job whose others do not exist.
int run_exposed(const BenchRequest& asked) {
  recipe::Recipe recipe = load_recipe_of_run(asked.recipe.path, overrides_of(asked.recipe));
  LaunchOptions node;
  node.nproc = asked.nproc;
  const int per_node = resolve_placement(node).nproc, ranks = per_node * asked.nnodes;
  if (asked.rank >= ranks) {
    throw core::UsageError("--rank", fmt::format("there are ranks 0 to {}", ranks - 1),
                           "use one of them");
  }
  ScratchFolder scratch("scaletrain-bench-");
  const fs::path input = scratch.file("recipe.json"), output = scratch.file("answer.json");
  std::ofstream(input) << recipe::to_json(recipe);
  const auto number = [](auto value) { return fmt::format("{}", value); };
  constexpr std::chrono::hours kLongest{24};
  const Captured done = run_captured({.arguments = {worker_of(recipe),
                                                    "bench",
                                                    "exposed",
                                                    "--recipe",
                                                    input.string(),
                                                    "--out",
                                                    output.string(),
                                                    "--steps",
                                                    number(asked.steps),
                                                    "--ranks",
                                                    number(ranks),
                                                    "--ranks-per-node",
                                                    number(per_node),
                                                    "--rank",
                                                    number(asked.rank),
                                                    "--latency-us",
                                                    number(asked.latency_us),
                                                    "--inside-gbs",
                                                    number(asked.inside_gbs),
                                                    "--between-gbs",
                                                    number(asked.between_gbs)},
                                      .variables = {}},
                                     kLongest, &scratch.stops());
  if (done.stop_signal != 0) throw_stopped("bench", done.stop_signal);
  std::fputs(done.error.c_str(), stderr);
  if (!done.ok()) return done.status.shell_code();
  std::ifstream stream(output);
  const auto answer = nlohmann::ordered_json::parse(stream);
  const std::string text = asked.json ? core::json_text(answer, 2) + "\n" : exposed_text(answer);
  std::fputs(text.c_str(), stdout);
  return 0;
}

// Returns the activation bytes of the unchanged recipe, measured now if necessary; nullopt if that
// failed.
std::optional<std::int64_t> activations(const nlohmann::ordered_json& answer) {
  if (!answer.is_object() || !answer.contains("peak_bytes")) return std::nullopt;
  return answer.at("peak_bytes").at("activations").get<std::int64_t>();
}

int run_bench(BenchRequest asked) {
  if (asked.what == "exposed") return run_exposed(asked);
  recipe::Recipe recipe = with_remote_shards(
      load_recipe_of_run(asked.recipe.path, overrides_of(asked.recipe)), asked.recipe.path);
  const std::string worker = worker_of(recipe);
  const ScratchFolder scratch("scaletrain-bench-");
  recipe.output = scratch.file("run").string();
  if (asked.nproc.empty()) asked.nproc = std::to_string(recipe::ranks_of_copy(recipe));
  LaunchOptions ranks;
  ranks.nproc = asked.nproc;
  BenchReport report{.what = asked.what, .recipe = recipe.name, .costs = {}};
  report.ranks = resolve_placement(ranks).nproc;
  report.global_batch = plan_batch(recipe, report.ranks).global;
  const auto take = [&](const std::string& what, recipe::Technique technique) {
    core::log("{}", technique.name);
    return measure(asked, what, worker, recipe, std::move(technique), scratch);
  };
  for (recipe::Technique& technique : recipe::techniques(recipe, report.ranks)) {
    report.costs.push_back(take(asked.what, std::move(technique)));
    const int status = report.costs.back().exit_status;
    if (status != 0 && report.costs.size() == 1) return status;
  }
  const Cost memory = asked.what == "memory"
                          ? report.costs.front()
                          : take("memory", {"the memory of it, for a budget", {}});
  if (const auto half =
          recipe::half_of_activations(recipe, activations(memory.answer).value_or(0))) {
    report.costs.push_back(take(asked.what, *half));
  }
  const std::string text = asked.json ? bench_json(report) : bench_text(report);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_status) {
  const auto asked = std::make_shared<BenchRequest>();
  CLI::App* const command = app.add_subcommand(
      "bench", "Measure a recipe's memory or speed, as it is and with techniques that change it");
  command
      ->add_option(
          "WHAT", asked->what,
          "Measurement. memory: peak bytes by kind. speed: steps per second. exposed: "
          "communication time of one rank that is not hidden, with the other ranks simulated.")
      ->required()
      ->check(CLI::IsMember({"memory", "speed", "exposed"}));
  command->add_option("RECIPE", asked->recipe.path, "Recipe to measure.")->required();
  command->add_option("--nproc", asked->nproc,
                      "Number of ranks on this machine; `gpu` starts one for each device. Default: "
                      "as many as one model replica needs; 1 for exposed.");
  command
      ->add_option("--steps", asked->steps,
                   "speed: number of timed steps, after three warmup steps.")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100000}))
      ->capture_default_str();
  command
      ->add_option("--nnodes", asked->nnodes, "exposed: number of nodes with --nproc ranks each.")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--rank", asked->rank, "exposed: rank to measure.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--latency-us", asked->latency_us,
                   "exposed: latency of a message in microseconds.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--inside-gbs", asked->inside_gbs,
                   "exposed: bandwidth of a rank inside a node in GB/s; 0 means no limit.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--between-gbs", asked->between_gbs,
                   "exposed: bandwidth of a rank between nodes in GB/s; 0 means no limit.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--set", asked->recipe.set,
                   "Set a key of the recipe, for example optimizer.lr=0.1. Repeatable.")
      ->allow_extra_args(false);
  command->add_option("--worker", asked->recipe.worker,
                      "Path of a worker program of your own, with its models.");
  command->add_flag("--json", asked->json, "Print one JSON object instead of text.");
  command->callback([asked, &exit_status] { exit_status = run_bench(*asked); });
}

}  // namespace scaletrain::launcher
