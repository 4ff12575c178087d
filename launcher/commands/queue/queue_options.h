// The flags of `scaletrain queue` and `scaletrain sweep`, and the jobs that they make.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/queue/places.h"
#include "launcher/commands/queue/queued_job.h"
#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

inline constexpr int kMostQueueJobs = 1024;

struct QueueOptions {
  std::vector<std::string> recipes{};  // for a queue
  std::string recipe{};                // for a sweep
  std::vector<std::string> axes{};
  std::vector<std::string> set{};
  std::string folder{};
  std::string devices{};
  std::string nproc = "1";
  std::string jobs = "0";
  std::string max_restarts = "0";
  std::string table = "text";
  std::optional<std::string> slurm{};  // arguments for `scaletrain slurm`, which then runs the jobs
  bool is_sweep = false;
  bool show = false;
  bool retry = false;
};

void declare_queue(CLI::App& command, QueueOptions& options);
void declare_sweep(CLI::App& command, QueueOptions& options);

// Returns the folder of the queue or sweep; default of a sweep: runs/sweep-RECIPE.
std::string folder_of(const QueueOptions& options);
// Returns the number of workers of each run. Throws core::UsageError for an invalid number, like
// jobs_of() and places_of().
int workers_of(const QueueOptions& options);
// Returns the jobs of a queue's recipes or of a sweep's combinations; reports every recipe error
// before anything is started.
std::vector<QueuedJob> jobs_of(const QueueOptions& options);
// Returns the places on this machine where jobs would run at the same time.
std::vector<RunPlace> places_of(const QueueOptions& options);

}  // namespace scaletrain::launcher
