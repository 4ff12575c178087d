#include "launcher/commands/queue/queue_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "launcher/commands/queue/grid.h"
#include "launcher/flags/values.h"
#include "launcher/jobs/checks/launch_checks.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/run_folder.h"
#include "launcher/place/batch_check.h"
#include "lib/core/process/cores.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

void add_common_flags(CLI::App& command, QueueOptions& options) {
  command
      .add_option("--set", options.set,
                  "Set a key in the recipe of every run, for example threads=2. Repeatable.")
      ->allow_extra_args(false);
  command.add_option(
      "--devices", options.devices,
      "GPUs to use: numbers such as 0,1, UUIDs or MIG instances; `cpu` uses none. Default: all.");
  command.add_option("--nproc", options.nproc,
                     "Number of workers, and of devices, for each run. Default: 1.");
  command.add_option(
      "--jobs", options.jobs,
      "Maximum number of runs at a time. Default: as many as the devices allow; 1 on CPUs.");
  command.add_option("--max-restarts", options.max_restarts,
                     "Maximum number of restarts of each run. Default: 0.");
  command.add_option("--table", options.table,
                     "Format of the table of runs: text, csv or json. Default: text.");
  command.add_option(
      "--slurm", options.slurm,
      "Submit the runs with these flags of scaletrain slurm: --slurm='--gpus-per-node 8'. With "
      "--print among them, only print the scripts.");
  command.add_flag("--show", options.show, "Only show the runs of the queue.");
  command.add_flag("--retry", options.retry, "Queue failed runs again.");
}

// Makes the job of a recipe; all its mistakes are reported here, before anything is started.
QueuedJob make_job(const std::string& recipe_file, const std::vector<std::string>& set, int nproc) {
  const recipe::Recipe recipe = load_recipe_of_run(recipe_file, set);
  plan_batch(recipe, nproc);
  check_data(recipe, nproc, holds_run(recipe.output) ? Begins::kResumed : Begins::kLater);
  return {.name = recipe.name,
          .recipe = fs::absolute(recipe_file).lexically_normal(),
          .set = set,
          .output = recipe.output};
}

std::vector<QueuedJob> jobs_of_recipes(const QueueOptions& options, int nproc) {
  std::vector<QueuedJob> jobs;
  for (const std::string& recipe : options.recipes) {
    jobs.push_back(make_job(recipe, options.set, nproc));
  }
  return jobs;
}

std::vector<QueuedJob> jobs_of_sweep(const QueueOptions& options, int nproc) {
  std::vector<Axis> axes;
  axes.reserve(options.axes.size());
  for (const std::string& text : options.axes) axes.push_back(parse_axis(text));
  std::vector<QueuedJob> jobs;
  for (const auto& values : combinations(axes)) {
    const std::string name = combination_name(values);
    std::vector<std::string> set = options.set;
    for (const auto& [key, value] : values) set.push_back(fmt::format("{}={}", key, value));
    set.push_back("name=" + name);
    set.push_back("output=" +
                  (fs::absolute(folder_of(options)) / name).lexically_normal().string());
    jobs.push_back(make_job(options.recipe, set, nproc));
    jobs.back().values = values;
  }
  return jobs;
}

}  // namespace

void declare_queue(CLI::App& command, QueueOptions& options) {
  options.folder = "runs/queue";
  command.add_option("RECIPE", options.recipes,
                     "Recipes to add. Without one, go on with the queued runs.");
  command.add_option("--folder", options.folder, "Folder of the queue. Default: runs/queue.");
  add_common_flags(command, options);
}

void declare_sweep(CLI::App& command, QueueOptions& options) {
  options.is_sweep = true;
  command.add_option("RECIPE", options.recipe, "Recipe to vary.")->required();
  command
      .add_option("AXIS", options.axes,
                  "Key and its values: 'optimizer.lr=[1e-4,3e-4]'. Repeatable.")
      ->required();
  command.add_option("--folder", options.folder, "Folder of the runs. Default: runs/sweep-RECIPE.");
  add_common_flags(command, options);
}

std::string folder_of(const QueueOptions& options) {
  if (!options.folder.empty()) return options.folder;
  return "runs/sweep-" + fs::path(options.recipe).stem().string();
}

int workers_of(const QueueOptions& options) {
  return parse_count("--nproc", options.nproc, 1, kMostQueueJobs);
}

std::vector<QueuedJob> jobs_of(const QueueOptions& options) {
  const int nproc = workers_of(options);
  return options.is_sweep ? jobs_of_sweep(options, nproc) : jobs_of_recipes(options, nproc);
}

std::vector<RunPlace> places_of(const QueueOptions& options) {
  return make_places(choose_devices(options.devices), workers_of(options),
                     parse_count("--jobs", options.jobs, 0, kMostQueueJobs), core::allowed_cpus());
}

}  // namespace scaletrain::launcher
