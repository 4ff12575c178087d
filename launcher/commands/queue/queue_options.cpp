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
  command.add_option("--set", options.set, "KEY=VALUE for every run; repeatable")
      ->allow_extra_args(false);
  command.add_option("--devices", options.devices,
                     "GPUs to use: 0,1, UUIDs or MIG instances; cpu for none (default: all)");
  command.add_option("--nproc", options.nproc, "workers, and so devices, of each run (default 1)");
  command.add_option("--jobs", options.jobs,
                     "runs side by side at most (default: as devices allow; 1 on CPUs)");
  command.add_option("--max-restarts", options.max_restarts, "restarts of each run (default 0)");
  command.add_option("--table", options.table, "text, csv or json (default text)");
  command.add_option("--slurm", options.slurm,
                     "submit the runs by scaletrain slurm with these words: "
                     "--slurm='--gpus-per-node 8'; --print among them prints the scripts");
  command.add_flag("--show", options.show, "only show what is there");
  command.add_flag("--retry", options.retry, "runs that failed wait again");
}

// The job of a recipe; every mistake of it is reported here, before anything is started.
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
                     "recipes to add; none: go on with those that are there");
  command.add_option("--folder", options.folder, "the queue's folder (default runs/queue)");
  add_common_flags(command, options);
}

void declare_sweep(CLI::App& command, QueueOptions& options) {
  options.is_sweep = true;
  command.add_option("RECIPE", options.recipe, "the recipe")->required();
  command.add_option("AXIS", options.axes, "KEY=[VALUES]: 'optimizer.lr=[1e-4,3e-4]'; repeatable")
      ->required();
  command.add_option("--folder", options.folder, "where the runs lie (default runs/sweep-RECIPE)");
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
