#include "launcher/commands/slurm/submission.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>

#include "launcher/commands/launch_command.h"
#include "launcher/commands/slurm/array.h"
#include "launcher/commands/slurm/batch_script.h"
#include "launcher/commands/slurm/job_record.h"
#include "launcher/flags/values.h"
#include "launcher/jobs/checks/launch_checks.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/run_folder.h"
#include "launcher/jobs/checks/run_request.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/place/batch_check.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/help_text.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNodes = 65536;
constexpr int kMostOnNode = 4096;

// Options of sbatch that the script sets and that must not be changed.
constexpr std::array<std::string_view, 15> kOurs{
    "array",      "export",  "gpus-per-node", "job-name",        "nodes",
    "no-requeue", "ntasks",  "output",        "ntasks-per-node", "open-mode",
    "parsable",   "requeue", "signal",        "test-only",       "wrap"};

SbatchOption parse_sbatch_flag(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos ||
      name.starts_with('-')) {
    throw core::UsageError("--sbatch", fmt::format("\"{}\" is not allowed", core::printable(text)),
                           "give a long option of sbatch without its dashes: --sbatch mem=64G");
  }
  if (std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end()) {
    throw core::UsageError("--sbatch", fmt::format("\"{}\" is set by scaletrain", name),
                           "see scaletrain slurm --help for a flag that changes it");
  }
  if (equals == std::string::npos) return {name, std::nullopt};
  return {name, text.substr(equals + 1)};
}

// Recipe as the job's launchers will read it.
recipe::Recipe recipe_of(const LaunchOptions& launch, std::optional<int> task) {
  LaunchOptions read = launch;
  if (task) {
    read.path = for_task(read.path, *task);
    for (std::string& override : read.set) override = for_task(override, *task);
  }
  return load_recipe_of_run(read.path, overrides_of(read));
}

int ranks_of(const SlurmOptions& options) {
  const int nodes = parse_count("--nodes", options.nodes, 1, kMostNodes);
  const std::string& given = options.launch.nproc;
  const bool counted = !given.empty() && given.find_first_not_of("0123456789") == std::string::npos;
  if (counted) return nodes * parse_count("--nproc", given, 1, kMostOnNode);
  if (options.gpus_per_node.empty()) return nodes;
  return nodes * parse_count("--gpus-per-node", options.gpus_per_node, 1, kMostOnNode);
}

recipe::Recipe checked_recipe(const SlurmOptions& options, std::optional<int> task) {
  recipe::Recipe recipe = recipe_of(options.launch, task);
  plan_batch(recipe, ranks_of(options));
  check_data(recipe, ranks_of(options),
             holds_run(recipe.output) ? Begins::kResumed : Begins::kLater);
  if (const auto stored = stored_recipe(recipe.output, recipe.model.catalog)) {
    check_differences(*stored, recipe, options.launch.allow, recipe.output);
  }
  return recipe;
}

// Checks the folders of the runs; a job without a name gets that of the first recipe.
void check_runs(const SlurmOptions& options, Submission& submission) {
  std::vector<std::optional<int>> tasks{std::nullopt};
  if (!options.array.empty()) {
    submission.tasks = array_tasks(options.array);
    tasks.assign(submission.tasks.begin(), submission.tasks.end());
  }
  std::set<fs::path> folders;
  for (const std::optional<int>& task : tasks) {
    const recipe::Recipe recipe = checked_recipe(options, task);
    if (submission.job_name.empty()) submission.job_name = recipe.name;
    if (!folders.insert(recipe.output).second) {
      throw core::UsageError(
          "--array", fmt::format("task {} would share the folder {}", *task, recipe.output),
          "put %a into the recipe's name or into --set output=FOLDER: it is the task's number");
    }
    submission.runs.emplace_back(recipe.output);
  }
}

// Seconds before the time limit at which Slurm signals the run to save.
std::int64_t save_before(const std::string& text) {
  constexpr std::int64_t kMost = 65535;  // Slurm keeps it in 16 bits
  const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(parse_duration("--save-before", text)).count();
  if (seconds >= 1 && seconds <= kMost) return seconds;
  throw core::UsageError("--save-before", fmt::format("\"{}\" is not allowed", text),
                         "give 1s to 1000m");
}

std::vector<std::string> launch_arguments(const SlurmOptions& options, std::int64_t save_before_s) {
  const LaunchOptions& launch = options.launch;
  std::vector<std::string> result{launch.path};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) result.insert(result.end(), {flag, value});
  };
  add("--nproc", launch.nproc);
  for (const std::string& override : launch.set) add("--set", override);
  for (const std::string& key : launch.allow) add("--allow", key);
  add("--worker", launch.worker);
  // Workers that do not save in time are killed while the script can still ask for another start.
  add("--grace", fmt::format("{}s", save_before_s * 3 / 4));
  return result;
}

std::vector<SbatchOption> sbatch_options(const SlurmOptions& options, const Submission& submission,
                                         std::int64_t save_before_s) {
  std::vector<SbatchOption> result{{"job-name", submission.job_name}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) result.emplace_back(name, value);
  };
  add("partition", options.partition);
  add("account", options.account);
  add("qos", options.qos);
  add("nodes", options.nodes);
  add("ntasks-per-node", "1");
  add("gpus-per-node", options.gpus_per_node);
  add("cpus-per-task", options.cpus_per_node);
  add("mem", options.mem);
  add("time", options.time);
  add("array", options.array);
  add("output", submission.output_pattern);
  add("signal", fmt::format("USR2@{}", save_before_s));
  result.emplace_back("requeue", std::nullopt);
  add("open-mode", "append");
  for (const std::string& flag : options.sbatch) result.push_back(parse_sbatch_flag(flag));
  return result;
}

}  // namespace

void declare_slurm(CLI::App& command, SlurmOptions& options) {
  const core::FlagGroup group(command, "Job");
  command.add_option("RECIPE", options.launch.path, "Recipe to run.");
  command.add_option("--nodes", options.nodes, "Number of nodes. Default: 1.");
  command.add_option("--gpus-per-node", options.gpus_per_node,
                     "Number of GPUs, and of workers, on each node.");
  command.add_option("--cpus-per-node", options.cpus_per_node, "Number of CPU cores on each node.");
  command.add_option("--nproc", options.launch.nproc,
                     "Number of workers on each node. Default: its number of GPUs.");
  command.add_option("--mem", options.mem, "Memory of each node, for example 64G.");
  command.add_option("--time", options.time, "Time limit of the job, for example 24:00:00.");
  command.add_option("--partition", options.partition, "Slurm partition.");
  command.add_option("--account", options.account, "Slurm account that is charged.");
  command.add_option("--qos", options.qos, "Slurm quality of service (QOS).");
  command.add_option("--array", options.array,
                     "Job array: one job for each number, for example 0-3. %a stands for the "
                     "number in RECIPE and --set.");
  command.add_option("--job-name", options.job_name,
                     "Name of the job. Default: the recipe's name.");
  command.add_option(
      "--output", options.output,
      "File for the output of the job. Default: slurm-%j.out, or slurm-%A_%a.out for an array.");
  command.add_option("--save-before", options.save_before,
                     "Time before the limit at which the run saves and stops. Default: 2m.");
  command
      .add_option("--sbatch", options.sbatch, "Another option of sbatch, NAME=VALUE. Repeatable.")
      ->allow_extra_args(false);
  add_recipe_flags(command, options.launch);
}

Submission prepare_submission(const SlurmOptions& options) {
  parse_count("--nodes", options.nodes, 1, kMostNodes);
  for (const auto& [flag, value] : {std::pair{"--gpus-per-node", &options.gpus_per_node},
                                    std::pair{"--cpus-per-node", &options.cpus_per_node}}) {
    if (!value->empty()) parse_count(flag, *value, 1, kMostOnNode);
  }
  const std::int64_t save_before_s = save_before(options.save_before);
  Submission result;
  result.job_name = options.job_name;
  check_runs(options, result);
  result.output_pattern = options.output;
  if (options.output.empty()) {
    result.output_pattern = options.array.empty() ? "slurm-%j.out" : "slurm-%A_%a.out";
  }
  // Reported now, and not after the job is submitted.
  log_path(result.output_pattern, options.array.empty() ? "0" : "0_0", result.job_name);
  result.arguments = launch_arguments(options, save_before_s);
  result.script = batch_script(sbatch_options(options, result, save_before_s));
  return result;
}

}  // namespace scaletrain::launcher
