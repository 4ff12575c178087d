#include "launcher/commands/queue/runner.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <optional>

#include "launcher/platform/stop_signals.h"
#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/disk/lease.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/shell_word.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

using State = QueuedJob::State;

struct Running {
  QueuedJob* job;
  std::size_t place;
  core::Process process;
  core::SteadyTime started;
};

class Runner {
 public:
  Runner(std::vector<QueuedJob>& jobs, const std::vector<RunPlace>& places,
         const RunnerOptions& options)
      : jobs_(jobs), places_(places), options_(options), busy_(places.size(), false) {}

  int run() {
    core::system_disk().make_folders(options_.folder / "logs");
    core::Lease lease(options_.folder / "lease.json", 0);
    StopSignals signals({});
    take_over();
    next_beat_ = core::now() + core::Lease::kBeatEvery;
    while (true) {
      try {
        if (stop_signal_ == 0 && !trouble_) start_jobs();
        if (running_.empty()) break;
        wait(signals.fd());
        while (const std::optional<int> signal = signals.next()) hear(*signal);
        see_job_ends();
        beat(lease);
      } catch (const core::Error&) {
        if (!trouble_) stop_for(std::current_exception());
      }
    }
    if (trouble_) std::rethrow_exception(trouble_);
    return status();
  }

 private:
  // Jobs of a killed queue have died with it.
  void take_over() {
    for (QueuedJob& job : jobs_) {
      if (job.state == State::kRunning) job.state = State::kWaiting;
      save(job);
    }
  }

  // A running job continues even if its file cannot be written.
  void save(const QueuedJob& job) const {
    if (lost_) return;  // the files are another's
    try {
      save_job(options_.folder, job);
    } catch (const core::StorageError& error) {
      core::warn("the state of job {} was not written: {}", job.number, error.what());
    }
  }

  void beat(core::Lease& lease) {
    if (core::now() < next_beat_) return;
    next_beat_ = core::now() + core::Lease::kBeatEvery;
    if (lost_ || lease.beat()) return;
    lost_ = true;
    throw core::StoppedError(options_.folder.string(), "another process has taken this queue over",
                             "look at it: scaletrain queue --show" + folder_flag());
  }

  std::string folder_flag() const {
    return " --folder " + core::shell_word(options_.folder.string());
  }

  // Stores an error; the queue reports it when the running jobs have saved.
  void stop_for(std::exception_ptr trouble) {
    trouble_ = std::move(trouble);
    for (const Running& one : running_) kill(one.process.pid(), SIGTERM);
    if (!running_.empty()) core::log("stopping {}", core::counted(std::ssize(running_), "job"));
  }

  void start_jobs() {
    for (QueuedJob& job : jobs_) {
      if (job.state != State::kWaiting) continue;
      const auto free = std::find(busy_.begin(), busy_.end(), false);
      if (free == busy_.end()) return;
      start_job(job, static_cast<std::size_t>(free - busy_.begin()));
    }
  }

  void start_job(QueuedJob& job, std::size_t place) {
    const std::filesystem::path log =
        options_.folder / "logs" / fmt::format("{:04}-{}.log", job.number, job.name);
    const core::Descriptor out =
        core::open_to_append(log, "check the folder's permissions and free space");
    const core::Descriptor nothing = core::open_nothing();
    std::vector<std::string> arguments{options_.launcher, "launch"};
    arguments.insert(arguments.end(), options_.flags.begin(), options_.flags.end());
    arguments.insert(arguments.end(), {"--resume", "auto"});
    for (const std::string& set : job.set) arguments.insert(arguments.end(), {"--set", set});
    arguments.push_back(job.recipe);

    const RunPlace& where = places_[place];
    job.state = State::kRunning;
    job.devices = where.devices;
    ++job.starts;
    save(job);
    core::SpawnRequest request{.arguments = arguments,
                               .variables = {},
                               .descriptors = {{nothing.get(), STDIN_FILENO},
                                               {out.get(), STDOUT_FILENO},
                                               {out.get(), STDERR_FILENO}},
                               .cpus = where.cpus};
    if (!where.devices.empty()) request.variables["CUDA_VISIBLE_DEVICES"] = where.devices;
    running_.push_back({.job = &job,
                        .place = place,
                        .process = core::Process::spawn(request),
                        .started = core::now()});
    busy_[place] = true;
    core::log("job {} {}: {}, log {}", job.number, job.name,
              job.starts > 1 ? "continues" : "starts", log.string());
  }

  void wait(int signal_fd) const {
    std::vector<pollfd> watched{{.fd = signal_fd, .events = POLLIN, .revents = 0}};
    for (const Running& one : running_) {
      watched.push_back({.fd = one.process.pidfd(), .events = POLLIN, .revents = 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_beat_ - core::now());
    poll(watched.data(), watched.size(), static_cast<int>(std::max<std::int64_t>(0, left.count())));
  }

  void hear(int signal) {
    const bool again = stop_signal_ != 0;
    if (again && signal != SIGINT) return;
    if (!again) stop_signal_ = signal;
    // A second Ctrl-C reaches every launcher as its second one: it kills its workers.
    for (const Running& one : running_) {
      kill(one.process.pid(), signal == SIGINT ? SIGINT : SIGTERM);
    }
    if (again) return;
    core::log("{}: stopping {}; to continue them: scaletrain queue{}", core::signal_name(signal),
              core::counted(std::ssize(running_), "job"), folder_flag());
  }

  void see_job_ends() {
    for (std::size_t i = 0; i < running_.size();) {
      const std::optional<core::ExitStatus> end = running_[i].process.ended();
      if (!end) {
        ++i;
        continue;
      }
      QueuedJob& job = *running_[i].job;
      job.exit_code = end->shell_code();
      const bool stopped = stop_signal_ != 0 || trouble_;
      job.state = end->ok() ? State::kDone : stopped ? State::kWaiting : State::kFailed;
      save(job);
      core::log("job {} {}: {} after {:.1f} s{}", job.number, job.name,
                job.state == State::kWaiting ? "stopped" : name_of(job.state),
                core::seconds_since(running_[i].started),
                job.state == State::kFailed ? ", " + core::to_text(*end) : "");
      busy_[running_[i].place] = false;
      remove_running(i);
    }
  }

  // Process is not assignable, so the vector is rebuilt.
  void remove_running(std::size_t index) {
    std::vector<Running> left;
    left.reserve(running_.size());
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (i != index) left.push_back(std::move(running_[i]));
    }
    running_.swap(left);
  }

  int status() const {
    if (stop_signal_ != 0) {
      return static_cast<int>(stop_signal_ == SIGINT ? core::ExitCode::kInterrupted
                                                     : core::ExitCode::kTemporary);
    }
    const bool failed = std::any_of(jobs_.begin(), jobs_.end(), [](const QueuedJob& job) {
      return job.state == State::kFailed;
    });
    return failed ? 1 : 0;
  }

  std::vector<QueuedJob>& jobs_;
  const std::vector<RunPlace>& places_;
  const RunnerOptions& options_;
  std::vector<bool> busy_;  // indexed by place
  std::vector<Running> running_;
  int stop_signal_ = 0;
  core::SteadyTime next_beat_{};
  bool lost_ = false;           // the lease, to another
  std::exception_ptr trouble_;  // error that ends the queue
};

}  // namespace

int run_queue(std::vector<QueuedJob>& jobs, const std::vector<RunPlace>& places,
              const RunnerOptions& options) {
  return Runner(jobs, places, options).run();
}

}  // namespace scaletrain::launcher
