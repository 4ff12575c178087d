#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/queue/hand_over.h"
#include "launcher/commands/queue/queue_options.h"
#include "launcher/commands/queue/results.h"
#include "launcher/commands/queue/runner.h"
#include "launcher/flags/values.h"
#include "lib/core/disk/lease.h"
#include "lib/core/error.h"
#include "lib/core/process/programs.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

void print_table(const QueueOptions& options, bool best_first) {
  const fs::path folder = folder_of(options);
  std::vector<QueuedJob> jobs = load_jobs(folder);
  // Without a live queue nothing runs: it was killed, and its jobs wait for the next queue.
  const std::optional<core::LeaseView> lease = core::view_lease(folder / "lease.json");
  if (!lease || !lease->alive.value_or(true)) {
    for (QueuedJob& job : jobs) {
      if (job.state == QueuedJob::State::kRunning) job.state = QueuedJob::State::kWaiting;
    }
  }
  ask_slurm(jobs);
  std::fputs(results_table(jobs, parse_table_format(options.table), best_first).c_str(), stdout);
}

int run_jobs(const QueueOptions& options) {
  const fs::path folder = folder_of(options);
  std::vector<QueuedJob> wanted = jobs_of(options);
  std::vector<QueuedJob> jobs = load_jobs(folder);
  add_jobs(jobs, std::move(wanted));
  if (jobs.empty()) {
    throw core::UsageError("queue", fmt::format("{} holds no jobs", folder.string()),
                           "scaletrain queue RECIPE..., or name another queue with --folder");
  }
  for (QueuedJob& job : jobs) {
    if (options.retry && job.state == QueuedJob::State::kFailed) {
      job.state = QueuedJob::State::kWaiting;
    }
  }
  if (options.slurm) {
    const std::vector<std::string> words = split_words(*options.slurm);
    for (const QueuedJob& job : jobs) save_job(folder, job);
    ask_slurm(jobs);
    return hand_to_slurm(jobs, core::program_beside_us("scaletrain"), words);
  }
  return run_queue(jobs, places_of(options),
                   {.folder = fs::absolute(folder),
                    .launcher = core::program_beside_us("scaletrain"),
                    .flags = {"--nproc", options.nproc, "--max-restarts", options.max_restarts}});
}

int run_or_show(const QueueOptions& options) {
  parse_table_format(options.table);
  workers_of(options);
  parse_count("--max-restarts", options.max_restarts, 0, kMostQueueJobs);
  const int status = options.show ? 0 : run_jobs(options);
  if (!options.slurm || options.show) print_table(options, /*best_first=*/options.is_sweep);
  return status;
}

}  // namespace

void add_queue_commands(CLI::App& app, int& exit_status) {
  const auto queued = std::make_shared<QueueOptions>(), swept = std::make_shared<QueueOptions>();
  CLI::App* const queue_command =
      app.add_subcommand("queue", "Run several recipes, one after another or side by side");
  declare_queue(*queue_command, *queued);
  queue_command->callback([queued, &exit_status] { exit_status = run_or_show(*queued); });
  CLI::App* const sweep_command =
      app.add_subcommand("sweep", "Run a recipe with every combination of some values");
  declare_sweep(*sweep_command, *swept);
  sweep_command->callback([swept, &exit_status] { exit_status = run_or_show(*swept); });
}

}  // namespace scaletrain::launcher
