#include "launcher/jobs/recipe_observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <utility>

#include "launcher/platform/gpus.h"
#include "launcher/workers/error_file.h"
#include "lib/core/job/worker_env.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

RecipeObserver::RecipeObserver(const JobParts& job, const Attempt& attempt)
    : job_(job),
      placement_(attempt.placement),
      report_lost_(attempt.report_lost),
      watch_(placement_.nproc, HangWatch::Workers::kOurs, job.hang_timeout, placement_.world_size(),
             attempt.exchange_silence),
      status_(job.folder.path(), placement_.node_rank, job.folder.attempt(), attempt.restart) {
  if (job.recipe.device == "cpu" || count_gpus() == 0) return;
  std::vector<int> ranks(static_cast<std::size_t>(placement_.nproc));
  std::iota(ranks.begin(), ranks.end(), placement_.first_rank());
  recorder_.emplace(job.folder.attempt_logs(), std::move(ranks));
}

GroupOptions RecipeObserver::begin(std::vector<WorkerPlan> plans) {
  plans_ = std::move(plans);
  GroupOptions options;
  options.observer = this;
  options.watch_every = watch_.every();
  if (job_.folder.is_owned()) options.heartbeat_every = core::Lease::kBeatEvery;
  if (job_.metrics_export != nullptr && job_.metrics_export->pid()) {
    options.other_children.push_back(*job_.metrics_export->pid());
  }
  return options;
}

// Workers handle some signals (lib/core/process/signals.h); any other one means SIGTERM.
int RecipeObserver::forwarded(int signal) { return is_known_to_workers(signal) ? signal : SIGTERM; }

std::optional<Hang> RecipeObserver::watch(const std::vector<RunningWorker>& running) {
  const std::vector<RankView> views = watch_.look(running);
  status_.write(views);
  if (job_.metrics_export != nullptr) job_.metrics_export->look();
  if (std::ranges::any_of(views, [](const RankView& view) { return view.beat.step > 0; })) {
    job_.replicas.train();
  }
  std::optional<Hang> hang =
      watch_.judge(views, [this](int rank) { return job_.replicas.job_of(rank); });
  if (!hang) return std::nullopt;
  const std::filesystem::path file =
      job_.folder.attempt_logs() / fmt::format("hang_{}.txt", placement_.node_rank);
  std::ofstream(file) << hang->stacks;
  if (recorder_) recorder_->record();
  hang->lines.push_back("all stacks: " + file.string());
  return hang;
}

bool RecipeObserver::tolerates_loss(const WorkerEnd& end) {
  return job_.replicas.tolerates_loss(end, last_seen(end));
}

std::vector<int> RecipeObserver::evicted_with(const WorkerEnd& end) {
  return job_.replicas.evicted_with(end, last_seen(end));
}

void RecipeObserver::loss_tolerated(const WorkerEnd& end, const std::optional<Hang>& hang) {
  const std::optional<LostReplica> lost =
      job_.replicas.note_own_loss(end, plans_, hang, last_seen(end));
  if (lost && report_lost_) report_lost_(*lost);
}

LastSeen RecipeObserver::last_seen(const WorkerEnd& end) const {
  const std::optional<ErrorFile> verdict =
      read_verdict(plans_[static_cast<std::size_t>(end.local_rank)].verdict_fd);
  return {
      .step = watch_.step_of(end.local_rank),
      .has_verdict = verdict.has_value(),
      .lost_rank_0 = verdict && verdict->message.find(core::kRank0WasLost) != std::string::npos};
}

}  // namespace scaletrain::launcher
