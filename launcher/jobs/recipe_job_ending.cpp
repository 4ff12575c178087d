// How a recipe's job ends: the part of RecipeJob that says so.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "launcher/jobs/recipe_job.h"
#include "launcher/workers/error_file.h"
#include "launcher/workers/failure_file.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/recipe/apart.h"

namespace scaletrain::launcher {

using core::ExitCode;

// Of replicas that outlive each other, once they train: before, all wait for all. Rank 0's is where
// they meet, and one that has lost it only follows. The launchers of other nodes do not hear of a
// loss in this version. Of async one that a signal stops leaves alone, of diloco all stop.
bool RecipeJob::may_be_lost(const WorkerEnd& end) const {
  if (!recipe::outlives_replicas(request_.recipe, placement_.nnodes) || end.rank == 0) return false;
  if (watch_->step_of(end.local_rank) == 0) return false;
  const bool has_stopped = end.status.code == static_cast<int>(ExitCode::kTemporary) ||
                           end.status.code == static_cast<int>(ExitCode::kInterrupted);
  if (has_stopped && request_.recipe.sync.name == "diloco") return false;
  const auto verdict = read_verdict(verdicts_[static_cast<std::size_t>(end.local_rank)].get());
  return !verdict || end.status.code != static_cast<int>(ExitCode::kTemporary);
}

int RecipeJob::succeeded() {
  if (lost_.empty()) return 0;
  core::log("the job is done with {} of {} replicas; lost: {}",
            placement_.world_size() - static_cast<int>(lost_.count()), placement_.world_size(),
            lost_.text());
  return kFewerReplicas;
}

int RecipeJob::stopped(const GroupEnd& end) {
  const auto succeeded = std::count_if(
      end.workers.begin(), end.workers.end(),
      [](const WorkerEnd& worker) { return worker.status.ok() || worker.was_outlived; });
  // The last step was under way.
  if (succeeded == placement_.nproc) return RecipeJob::succeeded();
  if (!lost_.empty()) core::log("lost before: {}", lost_.text());
  const auto killed =
      std::count_if(end.workers.begin(), end.workers.end(),
                    [](const WorkerEnd& worker) { return worker.status.signal == SIGKILL; });
  if (killed > 0) core::log("{} workers were killed before they had finished", killed);
  core::log("stopped; continue with: {}", resume_command_);
  return static_cast<int>(end.stop_signal == SIGINT ? ExitCode::kInterrupted
                                                    : ExitCode::kTemporary);
}

std::string RecipeJob::give_up(const Failure& failure) {
  if (lease_) write_failure(output_, failure, attempt_);
  const std::string lost = lost_.empty() ? "" : "\n  lost before: " + lost_.text();
  return lost + fmt::format("\n  all logs: {}\n  {}continue with: {}", attempt_folder().string(),
                            rules_.worth_restart(failure) ? "" : "when that is put right, ",
                            resume_command_);
}

}  // namespace scaletrain::launcher
