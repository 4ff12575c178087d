#include "launcher/jobs/recipe_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/jobs/checks/launch_checks.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/resume_checks.h"
#include "launcher/jobs/checks/run_folder.h"
#include "launcher/jobs/checks/start_check.h"
#include "launcher/jobs/newest_checkpoint.h"
#include "launcher/jobs/resume_command.h"
#include "launcher/place/batch_check.h"
#include "launcher/workers/failure_file.h"
#include "lib/core/error.h"
#include "lib/core/job/local_address.h"
#include "lib/core/log.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/text.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/train_state_check.h"
#include "lib/observe/devices/run_energy.h"
#include "lib/observe/line_writer.h"

namespace scaletrain::launcher {

namespace fs = std::filesystem;
using core::ExitCode;

RecipeJob::RecipeJob(RunRequest request, Placement placement, const LaunchOptions& options)
    : request_(std::move(request)),
      placement_(std::move(placement)),
      hang_timeout_(hang_timeout(options, kRecipeHangTimeout)),
      resume_command_(resume_command(request_.recipe.output, placement_)),
      launch_command_(launch_command(options, placement_)),
      workers_(request_.recipe, placement_, options, resume_command_),
      facts_{.name = request_.recipe.name,
             .agreed = recipe::agreed_values(request_.recipe),
             .journal_folder = fs::path(request_.recipe.output) / "logs" / "agents",
             .fits = [this](int nodes) {
               return batch_fits(request_.recipe, nodes * placement_.nproc);
             }} {
  check_batch(request_.recipe, placement_);
  check_replicate(request_.recipe, placement_);
  const bool is_fresh =
      request_.start != RunRequest::Start::kCheckpoint && !holds_run(folder_.path());
  check_data(request_.recipe, placement_.world_size(), is_fresh ? Begins::kNow : Begins::kResumed);
  if (is_fresh) static_cast<void>(weights_warning_of(request_.recipe));  // rank 0 warns
  check_devices(request_.recipe, placement_);
  warn_of_patience(request_.recipe, hang_timeout_);
  may_be_finished_ = check_start(request_);
}

std::optional<int> RecipeJob::open_run_folder() {
  if (may_be_finished_) {
    if (const std::optional<std::string> how = finished_run(folder_.path())) {
      core::log("{}: this run is finished: {}", folder_.path().string(), *how);
      return 0;
    }
  }
  folder_.create();
  // If nodes have no ranks yet, the leader of a round owns the folder.
  if (placement_.fixed_ranks && placement_.hosts_store()) folder_.own(true);
  workers_.open_shared();
  return std::nullopt;
}

std::string RecipeJob::memory(const std::vector<std::string>& addresses) {
  if (!std::exchange(has_made_memory_, true)) {
    memory_ = make_node_memory(request_.recipe, placement_, addresses);
  }
  return memory_ ? memory_->address() : "";
}

// Plans the attempt's number and starting point once: nodes might see the folder differently.
std::string RecipeJob::make_plan(const Attempt& attempt) {
  // The others must reach this node's workers; a node that has no address is refused here, before
  // any worker starts.
  if (attempt.placement.nnodes > 1) core::local_address(worker_env(attempt, 0));
  replicas_.begin(attempt.placement);  // before other nodes can be lost in this attempt
  if (!folder_.is_owned()) folder_.own(attempt.first);
  folder_.settle_links();
  const std::optional<fs::path> checkpoint =
      checkpoint_to_load(request_, attempt.first, attempt.replicas, memory_.get());
  if (checkpoint) {
    refuse_untrained(*checkpoint);
    refuse_past_end(*checkpoint, request_.recipe);
  }
  return nlohmann::json{{"attempt", folder_.next_attempt()},
                        {"checkpoint", checkpoint.value_or("").string()},
                        {"step", checkpoint ? format::read_manifest(*checkpoint).step : -1}}
      .dump();
}

AttemptPlan RecipeJob::plan_attempt(const Attempt& attempt, const StoreSocket& store) {
  placement_ = attempt.placement;
  if (placement_.hosts_store()) {
    begin_export();
  } else {
    finish_export();
    folder_.give_up_ownership();
  }
  plan_batch(request_.recipe, placement_.world_size());
  const nlohmann::json plan = nlohmann::json::parse(attempt.plan);
  const std::string checkpoint = plan.at("checkpoint");
  const std::int64_t step = plan.at("step");
  folder_.begin_attempt(plan.at("attempt"));
  replicas_.begin(placement_);
  watch_devices();
  const std::string peer_stores = resume_peer_stores(attempt, step);
  observer_.emplace(RecipeObserver::JobParts{.recipe = request_.recipe,
                                             .folder = folder_,
                                             .replicas = replicas_,
                                             .devices = *devices_,
                                             .metrics_export = export_ ? &*export_ : nullptr,
                                             .hang_timeout = hang_timeout_},
                    attempt);
  const HangWatch& watch = observer_->hang_watch();
  if (memory_ && placement_.node_rank == 0) memory_->follow_rank_0(watch.fd(0));
  if (!checkpoint.empty()) {
    core::log("continuing from {}", checkpoint);
  } else if (request_.start != RunRequest::Start::kFresh) {
    core::log("{}: no checkpoint yet, starting from the beginning", folder_.path().string());
  }
  std::vector<WorkerPlan> plans = workers_.plan({.attempt = attempt,
                                                 .number = folder_.attempt(),
                                                 .logs = folder_.attempt_logs(),
                                                 .checkpoint = checkpoint,
                                                 .store_fd = store.fd.get(),
                                                 .watch = watch,
                                                 .recorder = observer_->recorder(),
                                                 .peer_stores = peer_stores,
                                                 .secret_fd = memory_ ? memory_->secret_fd() : -1});
  GroupOptions options = observer_->begin(plans);
  write_start(attempt, checkpoint, step);
  return {.workers = std::move(plans), .options = std::move(options)};
}

// Returns the addresses of the peer-checkpoint stores for this node's workers; "" if there are
// none.
std::string RecipeJob::resume_peer_stores(const Attempt& attempt, std::int64_t step) {
  if (!memory_) return "";
  std::string stores = memory_->go_on(step, attempt.replicas, placement_.node_rank);
  if (placement_.node_rank == 0) warn_of_memory(attempt.replicas, attempt.one_host);
  return stores;
}

void RecipeJob::write_start(const Attempt& attempt, const std::string& checkpoint,
                            std::int64_t step) {
  nlohmann::ordered_json fields{{"ranks", placement_.world_size()},
                                {"nodes", placement_.nnodes},
                                {"restart", attempt.restart}};
  if (!checkpoint.empty()) {
    fields["resumed_from"] = checkpoint;
    fields["step"] = step;
  }
  folder_.write_event("attempt_started", fields);
}

std::vector<int> RecipeJob::note_lost(const std::vector<LostReplica>& lost) {
  return replicas_.note_losses(lost);
}

void RecipeJob::attempt_ended(const GroupEnd& /*end*/, const std::vector<WorkerPlan>& /*plans*/) {
  if (devices_) devices_->end_attempt();
  folder_.settle_links();
}

void RecipeJob::attempt_judged(const std::optional<Failure>& failure, const std::string& restart) {
  if (failure) {
    const FailureFile file = failure_file(*failure, folder_.attempt());
    nlohmann::ordered_json fields{{"rank", file.rank}, {"host", file.host}};
    if (file.node) fields["node"] = *file.node;
    if (file.step) fields["step"] = *file.step;
    if (file.signal) fields["signal"] = *file.signal;
    fields["exit_code"] = file.exit_code;
    fields["cause"] = file.cause;
    if (restart.empty()) fields["final"] = true;
    folder_.write_event("attempt_failed", fields);
  }
  if (restart.empty()) return;
  folder_.write_event("restarting",
                      {{"cause", failure ? short_text(*failure) : "the nodes of the job changed"},
                       {"text", restart}});
}

// Tasks of a Slurm step share the node's GPUs, each with its own launcher.
void RecipeJob::watch_devices() {
  if (!devices_) {
    devices_.emplace(DeviceWatch::Node{.run = folder_.path(),
                                       .has_gpus = request_.recipe.device != "cpu",
                                       .most_gpus = placement_.task ? 0 : placement_.nproc});
  }
  devices_->begin_attempt(folder_.attempt_logs(), placement_.node_rank, placement_.nproc);
}

// The closing summary's rows about energy: workers have ended, and the last samples are written.
void RecipeJob::report_energy() {
  if (!folder_.is_owned()) return;
  std::string text =
      observe::energy_text(observe::run_energy(folder_.path()), request_.recipe.cost);
  if (text.empty()) return;
  text.pop_back();  // its last newline
  core::log_line(text);
  observe::LineWriter(folder_.path() / "console.log", std::make_shared<core::Housekeeping>())
      .append(std::move(text));
}

void RecipeJob::begin_export() {
  if (!export_) export_.emplace(request_.recipe);
}

void RecipeJob::finish_export() {
  if (export_) export_->finish();
  export_.reset();
}

int RecipeJob::succeeded() {
  finish_export();
  report_energy();
  const LostReplicas& lost = replicas_.lost();
  if (lost.empty()) return 0;
  core::log("the job is done with {} of {} replicas; lost: {}",
            replicas_.count() - static_cast<int>(lost.count()), replicas_.count(), lost.text());
  return kFewerReplicas;
}

int RecipeJob::stopped(const GroupEnd& end) {
  const auto succeeded = std::count_if(
      end.workers.begin(), end.workers.end(),
      [](const WorkerEnd& worker) { return worker.status.ok() || worker.was_tolerated; });
  // The last step was under way.
  if (succeeded == placement_.nproc) return RecipeJob::succeeded();
  write_stop(end);
  finish_export();  // it passes that event on
  report_energy();
  const LostReplicas& lost = replicas_.lost();
  if (!lost.empty()) core::log("lost before: {}", lost.text());
  const auto killed =
      std::count_if(end.workers.begin(), end.workers.end(), [](const WorkerEnd& worker) {
        return worker.status.signal == SIGKILL && !worker.was_tolerated;
      });
  if (killed > 0) {
    core::log("{} {} had finished", core::counted(killed, "worker"),
              killed == 1 ? "was killed before it" : "were killed before they");
  }
  core::log("stopped; continue with: {}", resume_command_);
  return static_cast<int>(end.stop_signal == SIGINT ? ExitCode::kInterrupted
                                                    : ExitCode::kTemporary);
}

void RecipeJob::write_stop(const GroupEnd& end) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
  if (end.stop_signal != 0) fields["signal"] = core::signal_name(end.stop_signal);
  if (!end.trouble.empty()) fields["cause"] = end.trouble;
  folder_.write_event("stopped", fields);
}

// A recipe that only a worker can refuse leaves no folder, as one that the launcher refuses. Nodes
// that do not own the folder agree with the one that does, as far as they can know.
std::optional<std::string> RecipeJob::refusal(const Failure& failure) const {
  const bool refuses = failure.status.signal == 0 && !failure.cause.empty() && failure.rank >= 0 &&
                       failure.step < 0 &&
                       failure.status.code == static_cast<int>(ExitCode::kUsage);
  const bool may_go = folder_.is_owned() ? folder_.is_unused() : !holds_run(folder_.path());
  return refuses && may_go ? std::optional(failure.cause) : std::nullopt;
}

void RecipeJob::undo() {
  export_.reset();  // it writes into the folder
  folder_.remove();
}

std::string RecipeJob::give_up(const Failure& failure) {
  folder_.write_failure(failure);
  finish_export();  // trackers learn from that file that the run failed
  const LostReplicas& lost = replicas_.lost();
  const std::string before = lost.empty() ? "" : "\n  lost before: " + lost.text();
  return fmt::format("{}\n  all logs: {}\n  {}", before, folder_.attempt_logs().string(),
                     advice(failure));
}

// The recipe in the folder may be the cause, so that a run without a checkpoint is not resumed.
std::string RecipeJob::advice(const Failure& failure) const {
  const char* const first = "when that is put right, ";
  if (rules_.worth_restart(failure)) return "continue with: " + resume_command_;
  if (holds_run(folder_.path())) {
    return fmt::format("{}continue with: {}", first, resume_command_);
  }
  return fmt::format("{}start again with: {}", first, launch_command_);
}

}  // namespace scaletrain::launcher
