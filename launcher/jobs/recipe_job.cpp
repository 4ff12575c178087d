#include "launcher/jobs/recipe_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "launcher/flags/values.h"
#include "launcher/jobs/checks/data_cards.h"
#include "launcher/jobs/checks/launch_checks.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/resume_checks.h"
#include "launcher/jobs/checks/run_folder.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/jobs/newest_checkpoint.h"
#include "launcher/jobs/resume_command.h"
#include "launcher/jobs/worker_threads.h"
#include "launcher/place/batch_check.h"
#include "launcher/platform/gpus.h"
#include "launcher/platform/machine_load.h"
#include "launcher/platform/numa.h"
#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/disk/left_overs.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/housekeeping.h"
#include "lib/core/job/local_address.h"
#include "lib/core/log.h"
#include "lib/core/process/cores.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_links.h"
#include "lib/format/checkpoint/train_state_check.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using core::ExitCode;

// Patience of a successor leader: longer than the interval of the old leader's heartbeats.
constexpr std::chrono::seconds kHeirPatience{25};
constexpr std::chrono::milliseconds kHeirRetry{500};

constexpr const char* kLogRemedy = "check the folder's permissions and free space";

core::WorkerEnv env_of(const Attempt& attempt, int local_rank) {
  core::WorkerEnv env = worker_env(attempt.placement, local_rank);
  env.one_host = attempt.one_host;
  env.restart_count = attempt.restart;
  env.max_restarts = attempt.max_restarts;
  return env;
}

void warn_of_damage(const std::string& text) { core::warn("{}", text); }

}  // namespace

RecipeJob::RecipeJob(RunRequest request, Placement placement, const LaunchOptions& options)
    : request_(std::move(request)),
      placement_(std::move(placement)),
      worker_(worker_of(request_.recipe)),
      hang_timeout_(hang_timeout(options, kRecipeHangTimeout)),
      grace_(parse_duration("--grace", options.grace)),
      cpus_(bind_workers_here(options.numa_binding, placement_.nproc)),
      output_(request_.recipe.output),
      resume_command_(resume_command(output_, placement_)),
      launch_command_(launch_command(options, placement_)),
      facts_{
          .name = request_.recipe.name,
          .agreed = recipe::agreed_values(request_.recipe),
          .journal_folder = output_ / "logs" / "agents",
          .fits =
              [this](int nodes) { return batch_fits(request_.recipe, nodes * placement_.nproc); }},
      busy_threads_(busy_threads_now()) {
  check_batch(request_.recipe, placement_);
  check_replicate(request_.recipe, placement_);
  const bool is_fresh = request_.start != RunRequest::Start::kCheckpoint && !holds_run(output_);
  check_data(request_.recipe, placement_.world_size(), is_fresh ? Begins::kNow : Begins::kResumed);
  if (is_fresh) static_cast<void>(weights_warning_of(request_.recipe));  // rank 0 warns
  check_devices(request_.recipe, placement_);
  warn_of_patience(request_.recipe, hang_timeout_);
  may_be_finished_ = check_run_folder();
}

// Checks that the folder fits the request; true if a finished run may be the requested one.
bool RecipeJob::check_run_folder() const {
  const bool occupied = holds_run(output_);
  if (request_.start == RunRequest::Start::kFresh) {
    if (!occupied) return false;
    throw core::UsageError(
        output_.string(), "holds checkpoints of an earlier run",
        "continue it with --resume auto, or give this run another folder: --set output=FOLDER");
  }
  if (request_.start == RunRequest::Start::kNewest) {
    if (!occupied) {
      note_replaced_recipe(output_, request_.recipe);
      return false;
    }
    check_tokenizer(output_);
    const auto stored = stored_recipe(output_, request_.recipe.model.catalog);
    if (!stored) return true;
    return !check_differences(*stored, request_.recipe, request_.allow, output_.string());
  }
  const fs::path named = named_checkpoint();
  refuse_untrained(named);
  check_tokenizer(named.parent_path().parent_path());
  const auto stored = stored_recipe(request_.checkpoint, request_.recipe.model.catalog);
  if (stored) {
    check_differences(*stored, request_.recipe, request_.allow, request_.checkpoint.string());
  }
  if (occupied && format::find_checkpoint(output_, [](const std::string&) {}) != named) {
    throw core::UsageError(
        named.string(),
        fmt::format("is not the newest checkpoint of {}, where the run would go on",
                    output_.string()),
        "two histories would mix there: give this run another folder: --set output=FOLDER");
  }
  return false;
}

// The training tokens may have been made again since the run began.
void RecipeJob::check_tokenizer(const fs::path& run) const {
  const std::vector<std::string>& tokens = request_.recipe.data.train.tokens;
  if (!tokens.empty()) exchange::check_tokenizer_of_run(tokens.front(), run);
}

std::optional<int> RecipeJob::open_run_folder() {
  if (may_be_finished_) {
    if (const std::optional<std::string> how = finished_run(output_)) {
      core::log("{}: this run is finished: {}", output_.string(), *how);
      return 0;
    }
  }
  core::Disk& disk = core::system_disk();
  has_made_folder_ = core::type_at(output_) == fs::file_type::not_found;
  disk.make_folders(output_ / "logs");
  // If nodes have no ranks yet, the leader of a round owns the folder.
  if (placement_.fixed_ranks && placement_.hosts_store()) own_run_folder(true);
  recipe_ = core::make_memory_file("recipe.json", recipe::to_json(request_.recipe));
  lifeline_ = core::make_pipe();
  console_ = core::Descriptor(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  nothing_ = core::open_nothing();
  return std::nullopt;
}

// The one node that writes what lies at the top of the run's folder. An heir waits for the leader
// of the last round, which was cut off, to notice that and to leave.
void RecipeJob::own_run_folder(bool first) {
  core::Disk& disk = core::system_disk();
  const core::SteadyTime end = core::now() + kHeirPatience;
  while (!lease_) {
    try {
      lease_ = std::make_unique<core::Lease>(output_ / "lease.json", next_attempt(output_, 0),
                                             first ? core::Lease::kStaleAfter : kHeirPatience);
    } catch (const core::UsageError&) {
      if (first || core::now() >= end) throw;
      std::this_thread::sleep_for(kHeirRetry);
    }
  }
  core::Housekeeping housekeeping;
  for (const fs::path& folder : {output_, output_ / "checkpoints"}) {
    housekeeping.attempt("it stays, and is removed when that is possible",
                         [&] { core::remove_left_overs(disk, folder); });
  }
  for (const char* const name : {"failure.json", "finished.json"}) {
    housekeeping.attempt("it is of an earlier attempt", [&] { disk.remove_all(output_ / name); });
  }
  // Rank 0 replaces the recipe of a resumed run after loading everything: a recipe that does not
  // fit must not stay.
  if (!holds_run(output_)) {
    housekeeping.attempt("rank 0 writes it again", [&] {
      core::write_durably(disk, output_ / "recipe.json", recipe::to_json(request_.recipe));
    });
  }
  housekeeping.attempt("the run has no copy of its data's cards",
                       [&] { record_cards(request_.recipe.data, output_); });
  housekeeping.attempt("an export takes the tokenizer from the weights",
                       [&] { record_companions(request_.recipe.model, output_); });
}

// The checkpoint that was asked for by its path, verified.
fs::path RecipeJob::named_checkpoint() const {
  if (auto named = format::find_checkpoint(request_.checkpoint, warn_of_damage)) return *named;
  throw core::CheckpointError(request_.checkpoint.string(), "holds no checkpoint",
                              "name a run's folder, one of its checkpoints, or latest");
}

std::optional<fs::path> RecipeJob::checkpoint_to_load(const Attempt& attempt) const {
  if (!attempt.first || request_.start == RunRequest::Start::kNewest) {
    if (auto newest = newest_checkpoint(request_, attempt.replicas, memory_.get())) return newest;
    if (request_.start != RunRequest::Start::kCheckpoint) return std::nullopt;
  }
  if (!holds_run(output_)) refuse_copies_of_another(request_.recipe);
  if (request_.start == RunRequest::Start::kFresh) return std::nullopt;
  return named_checkpoint();
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
  if (attempt.placement.nnodes > 1) core::local_address(env_of(attempt, 0));
  replicas_.begin(attempt.placement);  // before other nodes can be lost in this attempt
  if (!lease_) own_run_folder(attempt.first);
  format::settle_links(core::system_disk(), output_ / "checkpoints");
  const std::optional<fs::path> checkpoint = checkpoint_to_load(attempt);
  if (checkpoint) {
    refuse_untrained(*checkpoint);
    refuse_past_end(*checkpoint, request_.recipe);
  }
  return nlohmann::json{{"attempt", next_attempt(output_, 0)},
                        {"checkpoint", checkpoint.value_or("").string()},
                        {"step", checkpoint ? format::read_manifest(*checkpoint).step : -1}}
      .dump();
}

AttemptPlan RecipeJob::plan_attempt(const Attempt& attempt, const StoreSocket& store) {
  placement_ = attempt.placement;
  launchers_here_ = attempt.launchers_here;
  if (!placement_.hosts_store()) {
    finish_export();
    lease_.reset();
  } else if (!export_) {
    export_.emplace(request_.recipe);
  }
  plan_batch(request_.recipe, placement_.world_size());
  const nlohmann::json plan = nlohmann::json::parse(attempt.plan);
  attempt_ = plan.at("attempt");
  was_unfinished_ = !fs::exists(output_ / "finished.json");
  const std::string checkpoint = plan.at("checkpoint");
  if (memory_) {
    memory_of_nodes_ = memory_->go_on(plan.at("step"), attempt.replicas, placement_.node_rank);
    if (placement_.node_rank == 0) warn_of_memory(attempt.replicas, attempt.one_host);
  }
  logs_.clear();
  verdicts_.clear();
  replicas_.begin(placement_);
  report_lost_ = attempt.report_lost;
  watch_.emplace(placement_.nproc, HangWatch::Workers::kOurs, hang_timeout_,
                 placement_.world_size(), attempt.exchange_silence);
  if (memory_ && placement_.node_rank == 0) memory_->follow_rank_0(watch_->fd(0));
  status_.emplace(output_, placement_.node_rank, attempt_, attempt.restart);
  if (request_.recipe.device != "cpu" && count_gpus() > 0) {
    std::vector<int> ranks(static_cast<std::size_t>(placement_.nproc));
    std::iota(ranks.begin(), ranks.end(), placement_.first_rank());
    recorder_.emplace(attempt_folder(), std::move(ranks));
  }
  std::vector<std::string> arguments{worker_, "train", "--recipe", core::path_of(recipe_.get())};
  if (!checkpoint.empty()) {
    core::log("continuing from {}", checkpoint);
    arguments.insert(arguments.end(), {"--resume", checkpoint});
  } else if (request_.start != RunRequest::Start::kFresh) {
    core::log("{}: no checkpoint yet, starting from the beginning", output_.string());
  }
  std::vector<WorkerPlan> plans;
  plans.reserve(static_cast<std::size_t>(placement_.nproc));
  for (int local_rank = 0; local_rank < placement_.nproc; ++local_rank) {
    plans.push_back(plan_worker(env_of(attempt, local_rank), local_rank, store, arguments));
  }
  GroupOptions options = group_options(plans);
  nlohmann::ordered_json fields{{"ranks", placement_.world_size()},
                                {"nodes", placement_.nnodes},
                                {"restart", attempt.restart}};
  if (!checkpoint.empty()) {
    fields["resumed_from"] = checkpoint;
    fields["step"] = plan.at("step").get<std::int64_t>();
  }
  write_event("attempt_started", fields);
  return {.workers = std::move(plans), .options = std::move(options)};
}

WorkerPlan RecipeJob::plan_worker(core::WorkerEnv env, int local_rank, const StoreSocket& store,
                                  const std::vector<std::string>& arguments) {
  const fs::path logs = attempt_folder() / std::to_string(env.rank);
  core::system_disk().make_folders(logs);
  env.attempt = attempt_;
  env.grace_s = std::chrono::duration<double>(grace_).count();
  env.resume_command = resume_command_;
  env.replicas = memory_of_nodes_;
  if (!env.replicas.empty()) env.secret_fd = memory_->secret_fd();
  env.error_file = logs / "error.json";
  env.lifeline_fd = lifeline_.read.get();
  env.beat_fd = watch_->fd(local_rank);
  env.verdict_fd = verdicts_.emplace_back(core::make_memory_file("scaletrain-verdict")).get();
  if (env.rank == 0) env.console_fd = console_.get();
  if (env.rank == 0) env.store_fd = store.fd.get();

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
  if (request_.recipe.device == "cuda") plan.device = fmt::format("cuda:{}", env.local_rank);
  if (!cpus_.empty()) plan.process.cpus = cpus_[static_cast<std::size_t>(local_rank)];
  choose_threads(plan, env.local_world_size);
  if (recorder_) plan.process.variables.merge(recorder_->variables());
  const core::Descriptor& output =
      logs_.emplace_back(core::open_to_append(logs / "stdout.log", kLogRemedy));
  plan.process.descriptors = {{nothing_.get(), STDIN_FILENO}, {output.get(), STDOUT_FILENO}};
  const core::Descriptor& error = logs_.emplace_back(core::open_to_append(plan.log, kLogRemedy));
  plan.process.descriptors.emplace_back(error.get(), STDERR_FILENO);
  for (const auto& fd : {std::optional(recipe_.get()), env.lifeline_fd, env.beat_fd, env.verdict_fd,
                         env.console_fd, env.store_fd, env.secret_fd}) {
    if (fd) plan.process.descriptors.emplace_back(*fd, *fd);
  }
  return plan;
}

void RecipeJob::choose_threads(WorkerPlan& plan, int local_world_size) const {
  const std::int64_t threads =
      recipe_threads(request_.recipe, local_world_size, plan.process.cpus.size());
  plan.process.variables["OMP_NUM_THREADS"] = std::to_string(threads);
  // A task of Slurm's knows how many share its cores; else it is known how many launchers are here.
  const int ranks = placement_.task ? local_world_size : local_world_size * launchers_here_;
  const bool shares = shares_cores(ranks * threads, core::usable_cores(), busy_threads_,
                                   static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  if (shares && std::getenv("OMP_WAIT_POLICY") == nullptr) {
    plan.process.variables["OMP_WAIT_POLICY"] = "PASSIVE";
  }
}

GroupOptions RecipeJob::group_options(const std::vector<WorkerPlan>& plans) {
  GroupOptions options;
  // Workers know some signals (lib/core/process/signals.h); any other means the same as SIGTERM.
  options.forwarded = [](int signal) { return is_known_to_workers(signal) ? signal : SIGTERM; };
  if (lease_) {
    options.beat_every = core::Lease::kBeatEvery;
    options.beat = [this]() -> std::string {
      if (lease_->beat()) return "";
      return fmt::format(
          "{}: another job has taken this folder while this one stood still or lost it",
          output_.string());
    };
  }
  options.may_be_lost = [this](const WorkerEnd& end) {
    return replicas_.may_be_lost(end, last_seen(end));
  };
  options.taken_along = [this](const WorkerEnd& end) {
    return replicas_.go_with(end, last_seen(end));
  };
  options.outlived = [this, plans](const WorkerEnd& end, const std::optional<Hang>& hang) {
    report_lost(end, plans, hang);
  };
  options.peer_lost = [this] { watch_->announce_lost_peer(); };
  if (export_ && export_->pid()) options.other_children.push_back(*export_->pid());
  options.watch_every = watch_->every();
  options.watch = [this](const std::vector<RunningWorker>& running) { return watch(running); };
  return options;
}

fs::path RecipeJob::attempt_folder() const {
  return output_ / "logs" / fmt::format("attempt_{}", attempt_);
}

}  // namespace scaletrain::launcher
