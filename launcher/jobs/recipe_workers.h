// Plans of a recipe's workers: program, variables, descriptors and log files of each rank.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "launcher/flags/launch_options.h"
#include "launcher/jobs/job.h"
#include "lib/core/descriptor.h"
#include "lib/core/housekeeping.h"
#include "lib/core/job/worker_env.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

class HangWatch;
class NcclRecorder;

// Properties of one attempt's workers that differ from those of the next attempt.
struct RecipeAttempt {
  const Attempt& attempt;
  int number = 0;              // N of logs/attempt_N
  std::filesystem::path logs;  // that folder
  std::string checkpoint;      // from which the workers resume; "": none
  int store_fd = -1;           // listening socket of the workers' store, on the node that hosts it
  const HangWatch& watch;
  const NcclRecorder* recorder = nullptr;  // null: not recorded
  std::string peer_stores{};               // that receive the workers' checkpoints; "": none
  int secret_fd = -1;                      // secret of these, if there are any
};

class RecipeWorkers {
 public:
  // Binds this process's workers as in --numa-binding. `recipe` must outlive this object. Throws
  // core::UsageError for flags that do not fit and if the worker program is missing.
  RecipeWorkers(const recipe::Recipe& recipe, const Placement& placement,
                const LaunchOptions& options, std::string resume_command);

  // Opens the descriptors that the workers of all attempts share.
  void open_shared();

  // Opens the log files of an attempt's workers and returns their plans; the files of the previous
  // attempt are closed.
  std::vector<WorkerPlan> plan(const RecipeAttempt& start);

 private:
  WorkerPlan plan_worker(const RecipeAttempt& start, int local_rank,
                         const std::vector<std::string>& arguments);
  core::WorkerEnv environment(const RecipeAttempt& start, int local_rank,
                              const std::filesystem::path& logs);
  void open_logs(const std::filesystem::path& logs, WorkerPlan& plan);
  // Opens `file` as descriptor `fd` of the worker. A file that cannot be made is a warning, and the
  // launcher relays the stream to its own; returns false then.
  bool open_log(const std::filesystem::path& file, int fd, WorkerPlan& plan, StreamPlan& stream);
  void choose_threads(const Attempt& attempt, int local_world_size, WorkerPlan& plan) const;

  const recipe::Recipe& recipe_;
  std::string program_;
  std::chrono::milliseconds grace_;
  std::vector<std::vector<int>> cpus_;  // indexed by local rank; empty: no binding
  std::string resume_command_;
  double busy_threads_;  // load of other processes here before the workers' start
  core::Descriptor recipe_file_, console_, nothing_;
  core::Pipe lifeline_;
  std::vector<core::Descriptor> logs_,
      verdicts_;  // log files and error descriptors of the current attempt
  core::Housekeeping housekeeping_;
};

// Returns the variables of a worker that depend only on the attempt.
core::WorkerEnv worker_env(const Attempt& attempt, int local_rank);

}  // namespace scaletrain::launcher
