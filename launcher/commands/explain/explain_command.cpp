#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "launcher/commands/commands.h"
#include "launcher/commands/explain/device_rows.h"
#include "launcher/commands/explain/explain_run.h"
#include "launcher/commands/explain/explain_runs.h"
#include "launcher/commands/explain/explanation.h"
#include "launcher/commands/explain/flag_rows.h"
#include "launcher/commands/explain/layout_rows.h"
#include "launcher/commands/explain/mesh_rows.h"
#include "launcher/commands/explain/pipeline_rows.h"
#include "launcher/commands/explain/recipe_rows.h"
#include "launcher/commands/explain/sync_notes.h"
#include "launcher/commands/launch_command.h"
#include "launcher/commands/overfit.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/checks/launch_checks.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/run_folder.h"
#include "launcher/jobs/checks/run_request.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/jobs/worker_threads.h"
#include "launcher/output/streams.h"
#include "launcher/place/batch_check.h"
#include "launcher/place/placement.h"
#include "launcher/place/slurm_step.h"
#include "launcher/platform/numa.h"
#include "launcher/platform/stop_signals.h"
#include "lib/core/error.h"
#include "lib/core/process/cores.h"
#include "lib/core/process/programs.h"
#include "lib/core/text/command_line.h"
#include "lib/observe/secrets.h"
#include "lib/recipe/load.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

struct Subject {
  const CLI::App& launch;
  const Words& words;
  const std::optional<Words>& program;
  const LaunchOptions& options;
};

// Value that follows from several flags at once, listed under the name of the flag it concerns.
struct Resolved {
  std::string value;
  bool by_slurm = false;
};

std::map<std::string, Resolved> resolve(const LaunchOptions& options) {
  const Placement alone = resolve_placement(options);
  const Placement here = resolve_placement(options, slurm_step());
  const auto port = [](const Placement& placement) {
    return placement.master_port == 0 ? "a free one" : std::to_string(placement.master_port);
  };
  const auto number = [](int value, int without) {
    return Resolved{.value = std::to_string(value), .by_slurm = value != without};
  };
  return {{"nproc", number(here.nproc, alone.nproc)},
          {"nnodes", {here.nnodes_text(), here.nnodes != alone.nnodes}},
          {"node-rank", number(here.node_rank, alone.node_rank)},
          {"master-addr", {here.master_addr, here.master_addr != alone.master_addr}},
          {"master-port", {port(here), port(here) != port(alone)}}};
}

// Default of a flag that was not given; "": it has no value then.
std::string default_of(const std::string& name, const Subject& subject) {
  const bool is_program = subject.program.has_value();
  if (name == "hang-timeout") return is_program ? kProgramHangTimeout : kRecipeHangTimeout;
  if (name == "log-dir") return "a temporary folder";
  if (name == "rdzv-id") return subject.options.standalone ? "a random one" : "none";
  if (name == "worker") return core::program_beside_us("scaletrain-worker");
  if (name == "numa-binding") return "none";
  return "";
}

std::string value_of(const CLI::Option& option, const Subject& subject) {
  if (option.get_items_expected_max() == 0 || option.count() > 0) return given_value(option);
  std::string value = default_of(long_name(option), subject);
  return value.empty() ? option.get_default_str() : value;
}

// True if the flag applies to the launched recipe or program.
bool is_for(const CLI::Option& option, const Subject& subject) {
  if (option.get_description().starts_with("Refused: ")) return false;
  return option.get_group() != (subject.program ? kRecipeFlags : kProgramFlags);
}

std::vector<Explained> launch_rows(const Subject& subject) {
  const std::map<std::string, Resolved> resolved = resolve(subject.options);
  const auto given = [&](const char* name) {
    return origin(*subject.launch.get_option(name), subject.words);
  };
  std::vector<Explained> rows;
  for (const CLI::Option* option : subject.launch.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string name = long_name(*option);
    if (name == "help" || name == "json" || name == "set" || !is_for(*option, subject)) continue;
    Explained row{
        .name = name, .value = value_of(*option, subject), .from = origin(*option, subject.words)};
    if (const auto found = resolved.find(name); found != resolved.end()) {
      row.value = found->second.value;
      if (found->second.by_slurm) row.from = "Slurm";
      const bool is_meeting = name == "master-addr" || name == "master-port";
      if (is_meeting && subject.options.standalone) {
        row.from = given("--standalone");
      } else if (is_meeting && !subject.options.rdzv_endpoint.empty()) {
        row.from = given("--rdzv-endpoint");
      }
      if (name == "master-addr" && row.value == subject.options.local_addr) {
        row.from = given("--local-addr");
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void explain_program(const Subject& subject, Explanation& explanation) {
  std::vector<std::string> words = *subject.program;
  for (std::string& word : words) word = observe::without_secrets(word);
  explanation.launch.push_back({.name = "program",
                                .value = fmt::format("{}", fmt::join(words, " ")),
                                .from = "the command line"});
  explanation.notes = check_rare_flags(subject.options.rare);
  choose_streams(subject.options, resolve_placement(subject.options, slurm_step()));
  parse_signals("--signals-to-handle", subject.options.signals);
}

void explain_recipe(const Subject& subject, const recipe::Recipe& recipe,
                    const Placement& placement, Explanation& explanation) {
  check_batch(recipe, placement);
  const recipe::BatchPlan plan = plan_batch(recipe, placement.world_size());
  explanation.recipe =
      recipe_rows(recipe::to_json(recipe),
                  recipe::key_origins(subject.options.path, overrides_of(subject.options)));
  explanation.recipe.push_back({.name = "global batch",
                                .value = batch_text(plan, placement.world_size()),
                                .from = "batch, nproc, nnodes"});
  for (Explained& row : pipeline_rows(recipe.parallel, plan)) {
    explanation.recipe.push_back(std::move(row));
  }
}

// Explains the distance between the GPUs of communicating ranks, if the driver reports it.
void explain_devices(const core::MeshPlan& mesh, int ranks_per_node, Explanation& explanation) {
  const GpuPaths paths = visible_paths_here();
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  for (Explained& row : device_rows(mesh, ranks_per_node, paths)) {
    explanation.mesh.push_back(std::move(row));
  }
  for (std::string& note :
       device_notes(mesh, ranks_per_node, paths,
                    visible != nullptr ? std::optional<std::string>(visible) : std::nullopt)) {
    explanation.notes.push_back(std::move(note));
  }
}

// Explains the positions of the ranks, and the memory and traffic of the model on each.
void explain_ranks(const recipe::Recipe& recipe, const Placement& placement,
                   Explanation& explanation) {
  if (placement.world_size() == 1) return;
  const core::MeshPlan mesh(placement.world_size(), recipe.parallel.mesh());
  explanation.mesh = mesh_rows(mesh, placement.nproc);
  explanation.notes = mesh_notes(mesh, placement.nproc);
  if (recipe.device != "cpu") explain_devices(mesh, placement.nproc, explanation);
  for (std::string& note : sync_notes(recipe, mesh.model_copies())) {
    explanation.notes.push_back(std::move(note));
  }
  try {
    const auto layout = ask_layout(recipe, placement.world_size(), placement.nproc);
    explanation.memory = memory_rows(
        layout, recipe.device == "cpu" || !recipe.offload ? recipe::Offload() : *recipe.offload);
    explanation.traffic = traffic_rows(layout);
  } catch (const core::UsageError& error) {
    explanation.notes.push_back(fmt::format("memory and traffic are not known: {}", error.found()));
  }
}

Explained program_threads(const Placement& placement) {
  const char* const set = std::getenv("OMP_NUM_THREADS");
  if (set != nullptr) return {"OMP_NUM_THREADS", set, "environment"};
  if (placement.nproc > 1) return {"OMP_NUM_THREADS", "1", "default with several workers"};
  return {"OMP_NUM_THREADS", "not set", "default with one worker"};
}

// Variables of the first worker; `recipe` is null for a program.
std::vector<Explained> worker_rows(const Subject& subject, const Placement& placement,
                                   const recipe::Recipe* recipe) {
  const core::WorkerEnv env = worker_env(placement, 0);
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const auto bound = bind_workers_here(subject.options.numa_binding, placement.nproc);
  std::vector<Explained> rows{
      {"RANK", number(env.rank), "node-rank x nproc"},
      {"WORLD_SIZE", number(env.world_size), "nnodes x nproc"},
      {"LOCAL_RANK", "0", "first worker"},
      {"LOCAL_WORLD_SIZE", number(env.local_world_size), "nproc"},
      {"MASTER_ADDR", env.master_addr, "master-addr"},
      {"MASTER_PORT", env.master_port == 0 ? "a free one" : number(env.master_port),
       "master-port"}};
  if (recipe == nullptr) {
    rows.push_back(program_threads(placement));
  } else {
    const std::size_t cpus = bound.empty() ? 0 : bound[0].size();
    rows.push_back({"OMP_NUM_THREADS", number(recipe_threads(*recipe, env.local_world_size, cpus)),
                    recipe->threads > 0        ? "the recipe's threads"
                    : threads_of_environment() ? "environment"
                                               : "CPUs over workers"});
  }
  if (bound.empty()) {
    const std::set<int> all = core::allowed_cpus();
    rows.push_back({"CPUs", cpu_list({all.begin(), all.end()}), "this process"});
  } else {
    rows.push_back({"CPUs", cpu_list(bound[0]), "numa-binding"});
  }
  const char* const devices = std::getenv("CUDA_VISIBLE_DEVICES");
  rows.push_back({"CUDA_VISIBLE_DEVICES", devices != nullptr ? devices : "not set",
                  devices != nullptr ? "environment" : "default"});
  return rows;
}

recipe::Recipe recipe_of(const Subject& subject, const Placement& placement) {
  recipe::Recipe recipe = load_recipe_of_run(subject.options.path, overrides_of(subject.options));
  check_allowed_keys(subject.options.allow, recipe);
  if (subject.options.overfit > 0) {
    make_overfit(subject.options.overfit, placement.world_size(), recipe);
  }
  return recipe;
}

// `recipe` is null for a program.
Explanation explain(const Subject& subject, const Placement& placement,
                    const recipe::Recipe* recipe) {
  Explanation explanation{.launch = launch_rows(subject)};
  if (recipe == nullptr) {
    explain_program(subject, explanation);
  } else {
    explain_recipe(subject, *recipe, placement, explanation);
    explain_ranks(*recipe, placement, explanation);
  }
  explanation.worker = worker_rows(subject, placement, recipe);
  if (subject.options.master_addr == kOpenAddress) {
    explanation.notes.emplace_back("a launch needs --master-addr, the address of node 0");
  }
  return explanation;
}

// Compares the recipe with its data last: the explanation helps where they are not on this machine.
void print_explanation(const Subject& subject, bool as_json) {
  if (!subject.program && subject.options.path.empty()) {
    throw core::UsageError("explain launch", "nothing to run is given",
                           "scaletrain explain launch [flags] RECIPE, or -- PROGRAM ARGS...");
  }
  check_launch_flags(subject.options);
  const Placement placement = resolve_placement(subject.options, slurm_step());
  std::optional<recipe::Recipe> recipe;
  if (!subject.program) recipe = recipe_of(subject, placement);
  const Explanation explanation = explain(subject, placement, recipe ? &*recipe : nullptr);
  std::fputs((as_json ? to_json(explanation) : to_text(explanation)).c_str(), stdout);
  core::flush_output();  // before the errors of the data
  if (!recipe) return;
  check_data(*recipe, placement.world_size(),
             holds_run(recipe->output) ? Begins::kResumed : Begins::kNow);
}

}  // namespace

CLI::App* add_explain_command(CLI::App& app, const std::vector<std::string>& words,
                              const std::optional<std::vector<std::string>>& program,
                              int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("explain", "Print every value that a command would use and its origin");
  command->require_subcommand(1);
  CLI::App* const launch = command->add_subcommand(
      "launch", "explain a launch: all flags and keys, the job and its memory");
  launch->option_defaults()->always_capture_default();
  const auto options = std::make_shared<LaunchOptions>();
  const auto as_json = std::make_shared<bool>(false);
  declare_launch(*launch, *options);
  launch->add_flag("--json", *as_json, "Print JSON instead of text.");
  launch->callback([launch, &words, &program, options, as_json, &exit_status] {
    if (program) options->program = *program;
    *options = with_open_address(std::move(*options));
    print_explanation({.launch = *launch, .words = words, .program = program, .options = *options},
                      *as_json);
    exit_status = 0;
  });
  add_explained_runs(*command, words, exit_status);
  add_explained_story(*command, exit_status);
  return launch;
}

}  // namespace scaletrain::launcher
