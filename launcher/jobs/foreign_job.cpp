#include "launcher/jobs/foreign_job.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "launcher/output/line_prefix.h"
#include "launcher/platform/gpus.h"
#include "launcher/platform/numa.h"
#include "launcher/platform/temporary_folder.h"
#include "launcher/workers/error_file.h"
#include "launcher/workers/failure_file.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/shell_word.h"

namespace scaletrain::launcher {
namespace {

std::string random_name() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz012345";
  std::array<unsigned char, 8> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw core::InternalError("getrandom", core::errno_text(errno));
  }
  std::string result;
  for (const unsigned char byte : bytes) result += kLetters[byte % kLetters.size()];
  return result;
}

// Returns the job's name; torchrun's "none" if it has none.
std::string run_id(const LaunchOptions& options) {
  if (options.standalone) return random_name();
  return options.run_id.empty() ? "none" : options.run_id;
}

// As torchrun: a program's words may name the local rank.
void fill_in_rank(std::string& word, int local_rank) {
  constexpr std::string_view kMacro = "${local_rank}";
  const std::string number = std::to_string(local_rank);
  for (std::size_t at = word.find(kMacro); at != std::string::npos; at = word.find(kMacro, at)) {
    word.replace(at, kMacro.size(), number);
    at += number.size();
  }
}

// Returns the entry of CUDA_VISIBLE_DEVICES for a local rank, or the rank itself if that is not
// set.
std::string device_of(const char* visible, int local_rank) {
  if (visible == nullptr) return std::to_string(local_rank);
  std::vector<std::string> entries = device_entries(visible);
  const auto at = static_cast<std::size_t>(local_rank);
  if (at >= entries.size()) {
    throw core::UsageError(
        "--virtual-local-rank",
        fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" has no device for local rank {}",
                    core::printable(visible), local_rank),
        "start fewer workers, or make more devices visible");
  }
  return std::move(entries[at]);
}

[[noreturn]] void refuse_program(const std::string& name) {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(name, absent)) {
    throw core::UsageError(name, "is neither an executable file nor on PATH",
                           "check the program after --");
  }
  const std::string here =
      core::shell_word(name.find('/') == std::string::npos ? "./" + name : name);
  if (access(name.c_str(), X_OK) == 0) {
    throw core::UsageError(name, "is not on PATH", "it is in this folder: -- " + here);
  }
  throw core::UsageError(
      name, "is not executable",
      fmt::format("chmod +x {}, or name its interpreter: -- {} {}", here,
                  name.ends_with(".py") ? "python" : "sh", core::shell_word(name)));
}

std::vector<std::string> resolved(std::vector<std::string> program) {
  const std::optional<std::string> path = core::find_program(program[0]);
  if (!path) refuse_program(program[0]);
  program[0] = *path;
  return program;
}

// True if a worker failed by itself and has left a file about it.
bool left_something(const WorkerEnd& end, const std::vector<WorkerPlan>& plans) {
  if (end.status.ok() || end.was_stopped) return false;
  const auto plan = std::find_if(plans.begin(), plans.end(),
                                 [&](const WorkerPlan& one) { return one.rank == end.rank; });
  std::error_code absent;
  return !plan->log.empty() || std::filesystem::exists(plan->error_file, absent);
}

}  // namespace

ForeignJob::ForeignJob(const LaunchOptions& options, Placement placement)
    : program_(resolved(options.program)),
      placement_(std::move(placement)),
      streams_(choose_streams(options, placement_)),
      role_(options.role),
      run_id_(run_id(options)),
      signals_(options.signals),
      facts_{.name = run_id_,
             .more_signals = parse_signals("--signals-to-handle", options.signals)},
      hang_timeout_(hang_timeout(options, kProgramHangTimeout)),
      beat_from_start_(options.beat_from_start),
      output_filters_(parse_filters(options.rare.stdout_filters)),
      error_filters_(parse_filters(options.rare.stderr_filters)),
      cpus_(bind_workers_here(options.numa_binding, placement_.nproc)),
      virtual_local_rank_(options.virtual_local_rank),
      keep_folder_(!options.log_dir.empty()) {
  if (options.rare.event_log == "console") {
    events_ = std::make_unique<EventLog>(
        EventLog::Job{.run_id = run_id_,
                      .role = role_,
                      .rdzv_backend = options.standalone ? "c10d" : options.rdzv_backend,
                      .program = std::filesystem::path(program_[0]).filename()});
  }
  timer_ = file_timer_of_environment(random_name());
  if (options.log_dir == kNoLogs) return;
  const std::filesystem::path parent =
      keep_folder_ ? std::filesystem::path(options.log_dir) : temporary_folder();
  const std::string name =
      fmt::format("{}_{}", keep_folder_ ? run_id_ : "scaletrain", random_name());
  folder_ = std::filesystem::absolute(parent) / name;
  core::system_disk().make_folders(folder_);
  if (keep_folder_) facts_.journal_folder = folder_;
}

ForeignJob::~ForeignJob() {
  std::error_code ignored;
  if (!keep_folder_) std::filesystem::remove_all(folder_, ignored);
}

AttemptPlan ForeignJob::plan_attempt(const Attempt& attempt, const StoreSocket& store) {
  placement_ = attempt.placement;
  ++number_;
  files_.clear();
  if (hang_timeout_.count() > 0) {
    const auto kind =
        beat_from_start_ ? HangWatch::Workers::kProgramsFromStart : HangWatch::Workers::kPrograms;
    watch_.emplace(placement_.nproc, kind, hang_timeout_, placement_.world_size(),
                   attempt.exchange_silence);
  }
  if (events_) events_->begin_attempt(placement_, attempt.restart);
  std::vector<WorkerPlan> plans;
  for (int local_rank = 0; local_rank < placement_.nproc; ++local_rank) {
    core::WorkerEnv env = worker_env(placement_, local_rank);
    env.restart_count = attempt.restart;
    env.max_restarts = attempt.max_restarts;
    plans.push_back(plan_worker(std::move(env)));
  }
  begin_filtered_files();
  return {.workers = std::move(plans), .options = group_options(store)};
}

WorkerPlan ForeignJob::plan_worker(core::WorkerEnv env) {
  const int local_rank = env.local_rank;
  std::filesystem::path folder;
  if (!folder_.empty()) {
    folder = folder_ / fmt::format("attempt_{}", number_) / std::to_string(local_rank);
    core::system_disk().make_folders(folder);
    env.error_file = folder / "error.json";
  }
  env.run_id = run_id_;
  env.role = role_;
  env.signals = signals_;
  env.use_agent_store = true;
  if (virtual_local_rank_) env.local_rank = 0;

  WorkerPlan plan{.rank = env.rank,
                  .local_rank = local_rank,
                  .process = {.arguments = program_, .variables = core::worker_variables(env)},
                  .standard_output = {},
                  .standard_error = {},
                  .error_file = env.error_file,
                  .log = "",
                  .device = ""};
  for (std::string& word : plan.process.arguments) fill_in_rank(word, local_rank);
  if (!cpus_.empty()) plan.process.cpus = cpus_[static_cast<std::size_t>(local_rank)];
  plan.process.variables.erase("SCALETRAIN_ATTEMPT");  // for our own workers only
  if (watch_) {
    const int fd = watch_->fd(local_rank);
    plan.process.variables["SCALETRAIN_BEAT_FILE"] = core::path_of(fd);
    plan.process.descriptors.emplace_back(fd, fd);
  }
  if (placement_.nproc > 1 && std::getenv("OMP_NUM_THREADS") == nullptr) {
    plan.process.variables["OMP_NUM_THREADS"] = "1";
  }
  if (timer_) plan.process.variables["TORCHELASTIC_TIMER_FILE"] = timer_->pipe();
  if (virtual_local_rank_) {
    plan.process.variables["CUDA_VISIBLE_DEVICES"] =
        device_of(std::getenv("CUDA_VISIBLE_DEVICES"), local_rank);
  }
  const WorkerStreams& streams = streams_[static_cast<std::size_t>(local_rank)];
  choose_stream(plan, STDOUT_FILENO, streams.standard_output, folder / "stdout.log");
  choose_stream(plan, STDERR_FILENO, streams.standard_error, folder / "stderr.log");
  return plan;
}

void ForeignJob::choose_stream(WorkerPlan& plan, int descriptor, const StreamChoice& choice,
                               const std::filesystem::path& file) {
  const bool is_error = descriptor == STDERR_FILENO;
  if (choice.to_file && is_error) plan.log = file;
  if (!choice.to_console) {
    const std::string target = choice.to_file ? file.string() : kNoLogs;
    const core::Descriptor& fd =
        files_.emplace_back(core::open_to_append(target, "name another folder with --log-dir"));
    plan.process.descriptors.emplace_back(fd.get(), descriptor);
    return;
  }
  StreamPlan& stream = is_error ? plan.standard_error : plan.standard_output;
  stream.relayed = is_error || choice.to_file;  // the report shows the last lines of errors
  stream.unseen = !stream.relayed;
  if (choice.prefixed) stream.prefix = line_prefix(role_, plan.rank, plan.local_rank);
  if (choice.to_file) stream.copy = file;
  stream.wanted = is_error ? error_filters_ : output_filters_;
  if (!choice.prefixed || stream.wanted.empty() || folder_.empty()) return;
  stream.filtered =
      file.parent_path().parent_path() / (is_error ? "filtered_stderr.log" : "filtered_stdout.log");
}

// As in torchrun, the files exist even if no line is written to them.
void ForeignJob::begin_filtered_files() const {
  if (folder_.empty()) return;
  const std::filesystem::path attempt = folder_ / fmt::format("attempt_{}", number_);
  if (!output_filters_.empty()) core::system_disk().create(attempt / "filtered_stdout.log");
  if (!error_filters_.empty()) core::system_disk().create(attempt / "filtered_stderr.log");
}

GroupOptions ForeignJob::group_options(const StoreSocket& store) {
  GroupOptions options;
  options.observer = this;
  options.store_fd = store.fd.get();
  if (watch_) options.watch_every = watch_->every();
  if (timer_) {
    options.watch_every =
        watch_ ? std::min(options.watch_every, FileTimer::kEvery) : FileTimer::kEvery;
  }
  return options;
}

void ForeignJob::started(const WorkerPlan& plan, pid_t pid) {
  if (events_) events_->worker_started(plan, pid);
}

std::optional<Hang> ForeignJob::watch(const std::vector<RunningWorker>& running) {
  if (timer_) timer_->look(running);
  if (!watch_) return std::nullopt;
  return watch_->judge(watch_->look(running));
}

void ForeignJob::attempt_ended(const GroupEnd& end, const std::vector<WorkerPlan>& plans) {
  keep_folder_ = keep_folder_ ||
                 std::any_of(end.workers.begin(), end.workers.end(), [&](const WorkerEnd& worker) {
                   return left_something(worker, plans);
                 });
  if (!events_) return;
  last_end_ = end;
  last_plans_ = plans;
}

int ForeignJob::succeeded() {
  if (events_) events_->end(last_end_, last_plans_);
  return 0;
}

int ForeignJob::stopped(const GroupEnd& end) {
  stop_signal_ = end.stop_signal;
  if (events_) events_->end(end, last_plans_);
  return 1;
}

std::string ForeignJob::give_up(const Failure& failure) {
  if (events_) events_->end(last_end_, last_plans_);
  if (keep_folder_ && !folder_.empty()) write_failure(folder_, failure, number_);
  const bool ours = failure.node < 0 || failure.node == placement_.node_rank;
  if (!ours || failure.rank < 0) {
    // The logs of workers that were only stopped may contain earlier messages.
    const bool has_logs = std::any_of(streams_.begin(), streams_.end(), [](const auto& streams) {
      return streams.standard_output.to_file || streams.standard_error.to_file;
    });
    keep_folder_ = keep_folder_ || has_logs;
    return has_logs ? "\n  the logs of this node: " + folder_.string() : "";
  }
  keep_folder_ = keep_folder_ || !failure.error_file.empty() || !failure.log.empty();
  if (failure.error_file.empty()) return "";
  // A launcher that is itself a worker reports the root cause to its own launcher.
  const char* const above = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (above != nullptr && *above != '\0') {
    copy_error_file(failure.error_file, above,
                    failure.status.signal != 0 ? -failure.status.signal : failure.status.code);
  }
  return "\n  its error file: " + failure.error_file;
}

}  // namespace scaletrain::launcher
