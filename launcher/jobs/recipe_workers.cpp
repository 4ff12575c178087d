#include "launcher/jobs/recipe_workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "launcher/flags/values.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/jobs/nccl_recorder.h"
#include "launcher/jobs/worker_threads.h"
#include "launcher/platform/machine_load.h"
#include "launcher/platform/numa.h"
#include "launcher/workers/hang_watch.h"
#include "lib/core/disk/disk.h"
#include "lib/core/process/cores.h"
#include "lib/core/process/subprocess.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

constexpr const char* kLogRemedy = "check the folder's permissions and free space";

}  // namespace

core::WorkerEnv worker_env(const Attempt& attempt, int local_rank) {
  core::WorkerEnv env = worker_env(attempt.placement, local_rank);
  env.one_host = attempt.one_host;
  env.restart_count = attempt.restart;
  env.max_restarts = attempt.max_restarts;
  return env;
}

RecipeWorkers::RecipeWorkers(const recipe::Recipe& recipe, const Placement& placement,
                             const LaunchOptions& options, std::string resume_command)
    : recipe_(recipe),
      program_(worker_of(recipe)),
      grace_(parse_duration("--grace", options.grace)),
      cpus_(bind_workers_here(options.numa_binding, placement.nproc)),
      resume_command_(std::move(resume_command)),
      busy_threads_(busy_threads_now()) {}

void RecipeWorkers::open_shared() {
  recipe_file_ = core::make_memory_file("recipe.json", recipe::to_json(recipe_));
  lifeline_ = core::make_pipe();
  console_ = core::Descriptor(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  nothing_ = core::open_nothing();
}

std::vector<WorkerPlan> RecipeWorkers::plan(const RecipeAttempt& start) {
  logs_.clear();
  verdicts_.clear();
  std::vector<std::string> arguments{program_, "train", "--recipe",
                                     core::path_of(recipe_file_.get())};
  if (!start.checkpoint.empty()) {
    arguments.insert(arguments.end(), {"--resume", start.checkpoint});
  }
  const int count = start.attempt.placement.nproc;
  std::vector<WorkerPlan> plans;
  plans.reserve(static_cast<std::size_t>(count));
  for (int local_rank = 0; local_rank < count; ++local_rank) {
    plans.push_back(plan_worker(start, local_rank, arguments));
  }
  return plans;
}

core::WorkerEnv RecipeWorkers::environment(const RecipeAttempt& start, int local_rank,
                                           const std::filesystem::path& logs) {
  core::WorkerEnv env = worker_env(start.attempt, local_rank);
  env.attempt = start.number;
  env.grace_s = std::chrono::duration<double>(grace_).count();
  env.resume_command = resume_command_;
  env.replicas = start.peer_stores;
  if (!env.replicas.empty()) env.secret_fd = start.secret_fd;
  env.error_file = logs / "error.json";
  env.lifeline_fd = lifeline_.read.get();
  env.beat_fd = start.watch.fd(local_rank);
  env.verdict_fd = verdicts_.emplace_back(core::make_memory_file("scaletrain-verdict")).get();
  if (env.rank == 0) env.console_fd = console_.get();
  if (env.rank == 0) env.store_fd = start.store_fd;
  return env;
}

WorkerPlan RecipeWorkers::plan_worker(const RecipeAttempt& start, int local_rank,
                                      const std::vector<std::string>& arguments) {
  const std::filesystem::path logs =
      start.logs / std::to_string(start.attempt.placement.first_rank() + local_rank);
  const core::WorkerEnv env = environment(start, local_rank, logs);
  WorkerPlan plan{.rank = env.rank,
                  .local_rank = local_rank,
                  .process = {.arguments = arguments, .variables = core::worker_variables(env)},
                  .standard_output = {},
                  .standard_error = {},
                  .error_file = env.error_file,
                  .verdict_fd = *env.verdict_fd,
                  .log = logs / "stderr.log",
                  .device = "",
                  .reports_lost_peer = true};
  if (recipe_.device == "cuda") plan.device = fmt::format("cuda:{}", env.local_rank);
  if (!cpus_.empty()) plan.process.cpus = cpus_[static_cast<std::size_t>(local_rank)];
  choose_threads(start.attempt, env.local_world_size, plan);
  if (start.recorder != nullptr) plan.process.variables.merge(start.recorder->variables());
  open_logs(logs, plan);
  for (const auto& fd : {std::optional(recipe_file_.get()), env.lifeline_fd, env.beat_fd,
                         env.verdict_fd, env.console_fd, env.store_fd, env.secret_fd}) {
    if (fd) plan.process.descriptors.emplace_back(*fd, *fd);
  }
  return plan;
}

void RecipeWorkers::open_logs(const std::filesystem::path& logs, WorkerPlan& plan) {
  plan.process.descriptors = {{nothing_.get(), STDIN_FILENO}};
  open_log(logs / "stdout.log", STDOUT_FILENO, plan, plan.standard_output);
  if (!open_log(plan.log, STDERR_FILENO, plan, plan.standard_error)) plan.log = "";
}

bool RecipeWorkers::open_log(const std::filesystem::path& file, int fd, WorkerPlan& plan,
                             StreamPlan& stream) {
  const bool is_open = housekeeping_.attempt("the workers write to the console instead", [&] {
    core::system_disk().make_folders(file.parent_path());
    logs_.push_back(core::open_to_append(file, kLogRemedy));
  });
  if (is_open) {
    plan.process.descriptors.emplace_back(logs_.back().get(), fd);
  } else {
    stream = {.relayed = true, .prefix = fmt::format("[rank {}] ", plan.rank)};
  }
  return is_open;
}

// `local_world_size` counts this launcher's workers. A Slurm task has one worker, and its variables
// give the number of tasks that share the node's cores.
void RecipeWorkers::choose_threads(const Attempt& attempt, int local_world_size,
                                   WorkerPlan& plan) const {
  const std::int64_t threads = recipe_threads(recipe_, local_world_size, plan.process.cpus.size());
  plan.process.variables["OMP_NUM_THREADS"] = std::to_string(threads);
  const int ranks =
      attempt.placement.task ? local_world_size : local_world_size * attempt.launchers_here;
  const bool shares = shares_cores(ranks * threads, core::usable_cores(), busy_threads_,
                                   static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  if (shares && std::getenv("OMP_WAIT_POLICY") == nullptr) {
    plan.process.variables["OMP_WAIT_POLICY"] = "PASSIVE";
  }
}

}  // namespace scaletrain::launcher
