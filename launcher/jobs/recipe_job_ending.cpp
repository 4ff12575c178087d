// How a recipe's job hangs and ends: the part of RecipeJob that says so.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "launcher/jobs/checks/run_folder.h"
#include "launcher/jobs/recipe_job.h"
#include "launcher/workers/error_file.h"
#include "launcher/workers/failure_file.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/housekeeping.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/log.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/text.h"
#include "lib/format/checkpoint/checkpoint_folder_links.h"

namespace scaletrain::launcher {

namespace fs = std::filesystem;
using core::ExitCode;

std::optional<Hang> RecipeJob::watch(const std::vector<RunningWorker>& running) {
  const std::vector<RankView> views = watch_->look(running);
  status_->write(views);
  if (export_) export_->look();
  if (std::ranges::any_of(views, [](const RankView& view) { return view.beat.step > 0; })) {
    replicas_.train();
  }
  const auto replica_of = [this](int rank) { return replicas_.of(rank); };
  std::optional<Hang> hang =
      replicas_.are_apart() ? watch_->judge(views, replica_of) : watch_->judge(views);
  if (!hang) return std::nullopt;
  const fs::path file = attempt_folder() / fmt::format("hang_{}.txt", placement_.node_rank);
  std::ofstream(file) << hang->stacks;
  if (recorder_) recorder_->record();
  hang->lines.push_back("all stacks: " + file.string());
  return hang;
}

void RecipeJob::attempt_ended(const GroupEnd& /*end*/, const std::vector<WorkerPlan>& /*plans*/) {
  if (lease_) format::settle_links(core::system_disk(), output_ / "checkpoints");
}

void RecipeJob::write_event(const std::string& event, const nlohmann::ordered_json& fields) {
  if (lease_) journal_.write(event, attempt_, fields);
}

void RecipeJob::write_stop(const GroupEnd& end) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
  if (end.stop_signal != 0) fields["signal"] = core::signal_name(end.stop_signal);
  if (!end.trouble.empty()) fields["cause"] = end.trouble;
  write_event("stopped", fields);
}

void RecipeJob::attempt_judged(const std::optional<Failure>& failure, const std::string& restart) {
  if (failure) {
    const FailureFile file = failure_file(*failure, attempt_);
    nlohmann::ordered_json fields{{"rank", file.rank}, {"host", file.host}};
    if (file.node) fields["node"] = *file.node;
    if (file.step) fields["step"] = *file.step;
    if (file.signal) fields["signal"] = *file.signal;
    fields["exit_code"] = file.exit_code;
    fields["cause"] = file.cause;
    if (restart.empty()) fields["final"] = true;
    write_event("attempt_failed", fields);
  }
  if (restart.empty()) return;
  write_event("restarting",
              {{"cause", failure ? short_text(*failure) : "the nodes of the job changed"},
               {"text", restart}});
}

LastSeen RecipeJob::last_seen(const WorkerEnd& end) const {
  const int verdict_fd = verdicts_[static_cast<std::size_t>(end.local_rank)].get();
  const std::optional<ErrorFile> verdict = read_verdict(verdict_fd);
  return {
      .step = watch_->step_of(end.local_rank),
      .has_verdict = verdict.has_value(),
      .lost_rank_0 = verdict && verdict->message.find(core::kRank0WasLost) != std::string::npos};
}

void RecipeJob::report_lost(const WorkerEnd& end, const std::vector<WorkerPlan>& plans,
                            const std::optional<Hang>& hang) {
  const std::optional<LostReplica> lost = replicas_.lose(end, plans, hang, last_seen(end));
  if (lost && report_lost_) report_lost_(*lost);
}

std::vector<int> RecipeJob::hear_lost(const std::vector<LostReplica>& lost) {
  return replicas_.hear(lost);
}

// The attempt's own finished.json: one that was there before it says nothing about it.
bool RecipeJob::is_done() const {
  std::error_code unknown;
  return was_unfinished_ && fs::is_regular_file(output_ / "finished.json", unknown);
}

void RecipeJob::finish_export() {
  if (export_) export_->finish();
  export_.reset();
}

int RecipeJob::succeeded() {
  finish_export();
  const LostReplicas& lost = replicas_.lost();
  if (lost.empty()) return 0;
  core::log("the job is done with {} of {} replicas; lost: {}",
            replicas_.count() - static_cast<int>(lost.count()), replicas_.count(), lost.text());
  return kFewerReplicas;
}

int RecipeJob::stopped(const GroupEnd& end) {
  const auto succeeded = std::count_if(
      end.workers.begin(), end.workers.end(),
      [](const WorkerEnd& worker) { return worker.status.ok() || worker.was_outlived; });
  // The last step was under way.
  if (succeeded == placement_.nproc) return RecipeJob::succeeded();
  write_stop(end);
  finish_export();  // which passes that event on
  const LostReplicas& lost = replicas_.lost();
  if (!lost.empty()) core::log("lost before: {}", lost.text());
  const auto killed =
      std::count_if(end.workers.begin(), end.workers.end(), [](const WorkerEnd& worker) {
        return worker.status.signal == SIGKILL && !worker.was_outlived;
      });
  if (killed > 0) {
    core::log("{} {} had finished", core::counted(killed, "worker"),
              killed == 1 ? "was killed before it" : "were killed before they");
  }
  core::log("stopped; continue with: {}", resume_command_);
  return static_cast<int>(end.stop_signal == SIGINT ? ExitCode::kInterrupted
                                                    : ExitCode::kTemporary);
}

// A recipe that only a worker can refuse leaves no folder, as one that the launcher refuses.
std::optional<std::string> RecipeJob::undo(const Failure& failure) {
  const bool refuses = failure.status.signal == 0 && !failure.cause.empty() && failure.step < 0 &&
                       failure.status.code == static_cast<int>(ExitCode::kUsage);
  if (!refuses || !has_made_folder_ || !lease_ || placement_.nnodes > 1 || holds_run(output_)) {
    return std::nullopt;
  }
  export_.reset();  // before its folder goes
  core::Housekeeping housekeeping;
  housekeeping.attempt("it holds no run", [&] { core::system_disk().remove_all(output_); });
  lease_.reset();
  return failure.cause;
}

std::string RecipeJob::give_up(const Failure& failure) {
  if (lease_) write_failure(output_, failure, attempt_);
  finish_export();  // trackers learn from that file that the run failed
  const LostReplicas& lost = replicas_.lost();
  const std::string before = lost.empty() ? "" : "\n  lost before: " + lost.text();
  return fmt::format("{}\n  all logs: {}\n  {}", before, attempt_folder().string(),
                     advice(failure));
}

// The recipe in the folder may be what was wrong, so without a checkpoint nobody is to resume it.
std::string RecipeJob::advice(const Failure& failure) const {
  const char* const first = "when that is put right, ";
  if (rules_.worth_restart(failure)) return "continue with: " + resume_command_;
  if (holds_run(output_)) return fmt::format("{}continue with: {}", first, resume_command_);
  return fmt::format("{}start again with: {}", first, launch_command_);
}

}  // namespace scaletrain::launcher
