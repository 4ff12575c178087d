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

namespace {

bool was_asked_to_stop(const WorkerEnd& end) {
  return end.status.code == static_cast<int>(ExitCode::kTemporary) ||
         end.status.code == static_cast<int>(ExitCode::kInterrupted);
}

}  // namespace

core::MeshPlan RecipeJob::mesh() const {
  return core::MeshPlan(placement_.world_size(), request_.recipe.parallel.mesh());
}

bool RecipeJob::has_verdict(const WorkerEnd& end) const {
  return read_verdict(verdicts_[static_cast<std::size_t>(end.local_rank)].get()).has_value();
}

// Of replicas that outlive each other, once they train: before, all wait for all. Rank 0's is where
// they meet, and one that has lost it only follows. The launchers of other nodes do not hear of a
// loss in this version. Of async one that a signal stops leaves alone, of diloco all stop. A rank
// of several has lost a peer of its replica, or rank 0, whose end is seen too.
bool RecipeJob::may_be_lost(const WorkerEnd& end) const {
  if (!recipe::outlives_replicas(request_.recipe, placement_.nnodes)) return false;
  const core::MeshPlan plan = mesh();
  if (plan.coordinate(end.rank, core::Axis::kReplica) == 0) return false;
  if (watch_->step_of(end.local_rank) == 0) return false;
  if (!was_asked_to_stop(end)) return true;
  if (plan.replica_group(end.rank).size() > 1 && has_verdict(end)) return true;
  if (request_.recipe.sync.name == "diloco") return false;
  return !has_verdict(end) || end.status.code != static_cast<int>(ExitCode::kTemporary);
}

// The other ranks of its replica; of one that a signal has stopped they are leaving with it.
std::vector<int> RecipeJob::lost_with(const WorkerEnd& end) const {
  if (was_asked_to_stop(end) && !has_verdict(end)) return {};
  std::vector<int> ranks = mesh().replica_group(end.rank);
  std::erase(ranks, end.rank);
  return ranks;
}

void RecipeJob::report_lost(const WorkerEnd& end, const std::vector<WorkerPlan>& plans,
                            const std::optional<Hang>& hang) {
  const core::MeshPlan plan = mesh();
  lost_.add(plan.coordinate(end.rank, core::Axis::kReplica), plan.replica_group(end.rank), end,
            plans, hang, watch_->step_of(end.local_rank));
}

int RecipeJob::succeeded() {
  if (lost_.empty()) return 0;
  const int replicas = mesh().size(core::Axis::kReplica);
  core::log("the job is done with {} of {} replicas; lost: {}",
            replicas - static_cast<int>(lost_.count()), replicas, lost_.text());
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
      std::count_if(end.workers.begin(), end.workers.end(), [](const WorkerEnd& worker) {
        return worker.status.signal == SIGKILL && !worker.was_outlived;
      });
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
