#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/queue/grid.h"
#include "launcher/commands/queue/hand_over.h"
#include "launcher/commands/queue/places.h"
#include "launcher/commands/queue/queued_job.h"
#include "launcher/commands/queue/results.h"
#include "launcher/commands/queue/runner.h"
#include "launcher/flags/launch_options.h"
#include "launcher/flags/values.h"
#include "launcher/jobs/token_check.h"
#include "launcher/place/batch_check.h"
#include "launcher/platform/numa.h"
#include "lib/core/cores.h"
#include "lib/core/error.h"
#include "lib/core/lease.h"
#include "lib/core/log.h"
#include "lib/core/programs.h"
#include "lib/recipe/load.h"
#include "lib/recipe/sources.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kMostJobs = 1024;

struct QueueOptions {
  std::vector<std::string> recipes;  // of a queue
  std::string recipe;                // of a sweep
  std::vector<std::string> axes;
  std::vector<std::string> set;
  std::string folder;
  std::string devices;
  std::string nproc = "1";
  std::string jobs = "0";
  std::string max_restarts = "0";
  std::string table = "text";
  std::optional<std::string> slurm;  // words for scaletrain slurm; the runs are not done here
  bool show = false;
  bool retry = false;
};

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
  const recipe::Recipe recipe = recipe::load_recipe(recipe_file, set);
  plan_batch(recipe, nproc);
  recipe::check_sources(recipe);
  check_tokens(recipe, nproc);
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
    set.push_back("output=" + (fs::absolute(options.folder) / name).lexically_normal().string());
    jobs.push_back(make_job(options.recipe, set, nproc));
    jobs.back().values = values;
  }
  return jobs;
}

void print_table(const QueueOptions& options, bool best_first) {
  std::vector<QueuedJob> jobs = load_jobs(options.folder);
  // Where no queue is at work nothing runs: it was killed, and its jobs wait for the next.
  const std::optional<core::LeaseView> lease =
      core::view_lease(fs::path(options.folder) / "lease.json");
  if (!lease || !lease->alive.value_or(true)) {
    for (QueuedJob& job : jobs) {
      if (job.state == QueuedJob::State::kRunning) job.state = QueuedJob::State::kWaiting;
    }
  }
  ask_slurm(jobs);
  std::fputs(results_table(jobs, parse_table_format(options.table), best_first).c_str(), stdout);
}

int run_jobs(const QueueOptions& options, std::vector<QueuedJob> wanted, int nproc) {
  std::vector<QueuedJob> jobs = load_jobs(options.folder);
  add_jobs(jobs, std::move(wanted));
  if (jobs.empty()) {
    throw core::UsageError("queue", fmt::format("{} holds no jobs", options.folder),
                           "scaletrain queue RECIPE...");
  }
  for (QueuedJob& job : jobs) {
    if (options.retry && job.state == QueuedJob::State::kFailed) {
      job.state = QueuedJob::State::kWaiting;
    }
  }
  if (options.slurm) {
    const std::vector<std::string> words = split_words(*options.slurm);
    for (const QueuedJob& job : jobs) save_job(options.folder, job);
    ask_slurm(jobs);
    return hand_to_slurm(jobs, core::program_beside_us("scaletrain"), words);
  }
  const std::vector<RunPlace> places =
      make_places(choose_devices(options.devices), nproc,
                  parse_count("--jobs", options.jobs, 0, kMostJobs), core::allowed_cpus());
  return run_queue(jobs, places,
                   {.folder = fs::absolute(options.folder),
                    .launcher = core::program_beside_us("scaletrain"),
                    .flags = {"--nproc", options.nproc, "--max-restarts", options.max_restarts}});
}

int queue(const QueueOptions& options) {
  parse_table_format(options.table);
  const int nproc = parse_count("--nproc", options.nproc, 1, kMostJobs);
  parse_count("--max-restarts", options.max_restarts, 0, kMostJobs);
  int status = 0;
  if (!options.show) status = run_jobs(options, jobs_of_recipes(options, nproc), nproc);
  if (!options.slurm || options.show) print_table(options, false);
  return status;
}

int sweep(QueueOptions options) {
  parse_table_format(options.table);
  const int nproc = parse_count("--nproc", options.nproc, 1, kMostJobs);
  parse_count("--max-restarts", options.max_restarts, 0, kMostJobs);
  if (options.folder.empty()) {
    options.folder = "runs/sweep-" + fs::path(options.recipe).stem().string();
  }
  int status = 0;
  if (!options.show) status = run_jobs(options, jobs_of_sweep(options, nproc), nproc);
  if (!options.slurm || options.show) print_table(options, true);
  return status;
}

}  // namespace

void add_queue_commands(CLI::App& app, int& exit_status) {
  const auto queued = std::make_shared<QueueOptions>();
  queued->folder = "runs/queue";
  CLI::App* const queue_command =
      app.add_subcommand("queue", "Run several recipes, one after another or side by side");
  queue_command->add_option("RECIPE", queued->recipes,
                            "recipes to add; none: go on with those that are there");
  queue_command->add_option("--folder", queued->folder, "the queue's folder (default runs/queue)");
  add_common_flags(*queue_command, *queued);
  queue_command->callback([queued, &exit_status] { exit_status = queue(*queued); });

  const auto swept = std::make_shared<QueueOptions>();
  CLI::App* const sweep_command =
      app.add_subcommand("sweep", "Run a recipe with every combination of some values");
  sweep_command->add_option("RECIPE", swept->recipe, "the recipe")->required();
  sweep_command
      ->add_option("AXIS", swept->axes, "KEY=[VALUES]: 'optimizer.lr=[1e-4,3e-4]'; repeatable")
      ->required();
  sweep_command->add_option("--folder", swept->folder,
                            "where the runs lie (default runs/sweep-RECIPE)");
  add_common_flags(*sweep_command, *swept);
  sweep_command->callback([swept, &exit_status] { exit_status = sweep(*swept); });
}

}  // namespace scaletrain::launcher
