#include "launcher/worker_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "launcher/output_relay.h"
#include "launcher/store_socket.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;

// A killed process that does not go within this time hangs in the kernel: nobody can wait for it.
constexpr milliseconds kKillPatience{10'000};
// Ended orphans of workers are adopted, and would stay as zombies.
constexpr milliseconds kReapEvery{10'000};
// How long a console may take nothing while workers are being stopped: one of them may wait for
// room for its last words.
constexpr milliseconds kConsolePatience{1000};

struct Worker {
  const WorkerPlan* plan;
  core::Process process;
  std::vector<OutputRelay> relays;  // standard error is the last
  bool ended = false;
  bool was_stopped = false;
};

OutputRelay make_relay(const StreamPlan& stream, int number, core::Console& console,
                       core::SpawnRequest& request, std::vector<core::Descriptor>& child_ends) {
  core::Pipe pipe = core::make_pipe();
  fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  request.descriptors.emplace_back(pipe.write.get(), number);
  child_ends.push_back(std::move(pipe.write));
  return {std::move(pipe.read), console, LogFile(stream.copy), stream.prefix,
          LineFilter(LogFile(stream.filtered), stream.wanted, stream.prefix)};
}

// Shared by all workers' relays.
struct Consoles {
  core::Console output{STDOUT_FILENO}, error{STDERR_FILENO};
};

Worker start(const WorkerPlan& plan, Consoles& consoles) {
  core::SpawnRequest request = plan.process;
  std::vector<core::Descriptor> child_ends;
  std::vector<OutputRelay> relays;
  if (plan.standard_output.relayed) {
    relays.push_back(
        make_relay(plan.standard_output, STDOUT_FILENO, consoles.output, request, child_ends));
  }
  if (plan.standard_error.relayed) {
    relays.push_back(
        make_relay(plan.standard_error, STDERR_FILENO, consoles.error, request, child_ends));
  }
  return {.plan = &plan, .process = core::Process::spawn(request), .relays = std::move(relays)};
}

class Group {
 public:
  Group(const std::vector<WorkerPlan>& plans, const GroupOptions& options, StopSignals& signals)
      : options_(options),
        signals_(signals),
        ends_(epoll_create1(EPOLL_CLOEXEC)),
        next_beat_(core::now() + options.beat_every),
        next_watch_(core::now() + options.watch_every),
        next_reap_(core::now() + kReapEvery) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // for end_groups
    if (!ends_) {
      throw core::InternalError("epoll", core::errno_text(errno),
                                "raise the limit of open files: ulimit -n");
    }
    workers_.reserve(plans.size());
    for (const WorkerPlan& plan : plans) {
      workers_.push_back(start(plan, consoles_));
      watch_end(workers_.back());
      options_.started(plan, workers_.back().process.pid());
    }
  }

  GroupEnd run() {
    while (running() > 0 && !given_up_) {
      wait();
      see_ends();
      hear_nodes();  // after the ends: one that other nodes felt was not of their making
      keep_time();
    }
    end_groups();
    for (Worker& worker : workers_) {
      for (OutputRelay& relay : worker.relays) relay.finish();
    }
    for (WorkerEnd& end : result_.workers) end.last_lines = last_lines(end.local_rank);
    return std::move(result_);
  }

 private:
  // What workers left behind holds memory, ports and devices that a restart needs.
  void end_groups() {
    for (const Worker& worker : workers_) worker.process.signal_group(SIGKILL);
    const core::SteadyTime end = core::now() + (given_up_ ? milliseconds(0) : kKillPatience);
    for (Worker& worker : workers_) {
      if (!worker.process.end_group(end) && worker.ended) {
        core::warn("rank {}: a process that it left behind hangs in the kernel", worker.plan->rank);
      }
    }
    reap_strangers();
  }

  // Of workers' processes that left their group and then ended.
  void reap_strangers() const {
    std::vector<pid_t> ours = options_.other_children;
    for (const Worker& worker : workers_) ours.push_back(worker.process.pid());
    if (store_server_) ours.push_back(store_server_->pid());
    core::reap_strangers(ours);
  }

  std::ptrdiff_t running() const {
    return std::count_if(workers_.begin(), workers_.end(),
                         [](const Worker& worker) { return !worker.ended; });
  }

  bool store_is_awaited() const { return options_.store_fd >= 0 && !store_server_; }

  // Sleeps until something happens, and passes output on.
  void wait() {
    std::vector<pollfd> watched;
    const auto watch = [&](int fd, short events) {
      watched.push_back({.fd = fd, .events = events, .revents = 0});
    };
    watch(signals_.fd(), POLLIN);
    watch(store_is_awaited() ? options_.store_fd : -1, POLLIN);
    watch(store_server_ && !store_server_ended_ ? store_server_->pidfd() : -1, POLLIN);
    watch(options_.nodes_fd, POLLIN);
    watch(ends_.get(), POLLIN);
    std::vector<OutputRelay*> relays;
    for (Worker& worker : workers_) {
      for (OutputRelay& relay : worker.relays) {
        relays.push_back(&relay);
        watch(relay.watched_fd(), relay.watched_events());
      }
    }
    nodes_changed_ = false;
    if (poll(watched.data(), watched.size(), time_left_ms()) <= 0) return;
    hear_signals();  // before an end that the same signal may have brought about
    if (watched[1].revents != 0) start_store_server();
    if (watched[2].revents != 0) see_store_server_end();
    nodes_changed_ = watched[3].revents != 0;
    const std::size_t first_relay = watched.size() - relays.size();
    for (std::size_t i = 0; i < relays.size(); ++i) {
      if (watched[first_relay + i].revents != 0) relays[i]->advance();
    }
  }

  // For poll: until the next deadline.
  int time_left_ms() const {
    core::SteadyTime next = next_reap_;
    const auto is_due = [&](core::SteadyTime time) { next = std::min(next, time); };
    if (deadline_) is_due(*deadline_);
    if (options_.beat) is_due(next_beat_);
    if (options_.watch) is_due(next_watch_);
    if (stopping_) is_due(next_console_look_);
    for (const Worker& worker : workers_) {
      for (const OutputRelay& relay : worker.relays) is_due(relay.late_at().value_or(next));
    }
    const auto left = std::chrono::ceil<milliseconds>(next - core::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  void hear_signals() {
    while (const std::optional<int> signal = signals_.next()) {
      if (result_.stop_signal == 0) result_.stop_signal = *signal;
      if (*signal == SIGINT) ++interrupts_;
      if (!stopping_) {
        const std::ptrdiff_t count = running();
        stop(options_.forwarded(*signal));
        core::log("{}: stopping {} workers, {:.1f} s for them to finish",
                  core::signal_name(*signal), count,
                  std::chrono::duration<double>(options_.grace).count());
      } else if (*signal == SIGINT && interrupts_ == 2) {  // a person who is waiting
        core::log("SIGINT again: killing {} workers", running());
        kill_all();
      }
    }
  }

  void watch_end(Worker& worker) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &worker}};
    if (epoll_ctl(ends_.get(), EPOLL_CTL_ADD, worker.process.pidfd(), &event) != 0) {
      throw core::InternalError("epoll", core::errno_text(errno),
                                "raise fs.epoll.max_user_watches");
    }
  }

  // In the order in which they came, which the kernel keeps: the first of several that are seen at
  // once is the cause.
  void see_ends() {
    std::vector<epoll_event> events(workers_.size());
    const int count =
        epoll_wait(ends_.get(), events.data(), static_cast<int>(events.size()), /*timeout=*/0);
    bool failed = false;
    for (int i = 0; i < count; ++i) {
      auto* const worker = static_cast<Worker*>(events[static_cast<std::size_t>(i)].data.ptr);
      const std::optional<core::ExitStatus> status = worker->process.ended();
      if (!status) continue;
      epoll_ctl(ends_.get(), EPOLL_CTL_DEL, worker->process.pidfd(), nullptr);
      worker->ended = true;
      failed = failed || !status->ok();
      result_.workers.push_back({.rank = worker->plan->rank,
                                 .local_rank = worker->plan->local_rank,
                                 .pid = worker->process.pid(),
                                 .status = *status,
                                 .time = core::unix_time(),
                                 .was_stopped = worker->was_stopped});
    }
    if (failed && !stopping_) stop(SIGTERM);
  }

  void keep_time() {
    const core::SteadyTime time = core::now();
    for (Worker& worker : workers_) {
      for (OutputRelay& relay : worker.relays) relay.show_late(time);
    }
    if (deadline_ && time >= *deadline_) {
      if (killed_) {
        core::warn("a worker hangs in the kernel and cannot be killed");
        given_up_ = true;
      } else {
        kill_all();
      }
    }
    if (stopping_ && time >= next_console_look_) {
      next_console_look_ = time + kConsolePatience;
      see_consoles();
    }
    if (time >= next_reap_) {
      next_reap_ = time + kReapEvery;
      reap_strangers();
    }
    if (options_.beat && time >= next_beat_) {
      next_beat_ = time + options_.beat_every;
      const std::string trouble = options_.beat();
      if (!trouble.empty()) stop_for(trouble);
    }
    if (options_.watch && time >= next_watch_) {
      next_watch_ = time + options_.watch_every;
      watch();
    }
  }

  // Gives up those that have taken nothing since the last look.
  void see_consoles() {
    for (const auto& [console, taken] : {std::pair(&consoles_.output, &output_taken_),
                                         std::pair(&consoles_.error, &error_taken_)}) {
      if (console->taken() == std::exchange(*taken, console->taken()) && is_awaited(console)) {
        console->give_up();
      }
    }
  }

  bool is_awaited(const core::Console* console) const {
    return std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
      return std::any_of(worker.relays.begin(), worker.relays.end(),
                         [&](const OutputRelay& relay) { return relay.late_console() == console; });
    });
  }

  void watch() {
    if (stopping_) return;
    std::vector<RunningWorker> runs;
    for (const Worker& worker : workers_) {
      if (worker.ended) continue;
      runs.push_back({.rank = worker.plan->rank,
                      .local_rank = worker.plan->local_rank,
                      .pid = worker.process.pid()});
    }
    result_.hang = options_.watch(runs);
    if (!result_.hang) return;
    stopping_ = true;
    for (Worker& worker : workers_) worker.was_stopped = !worker.ended;
    kill_all();
  }

  void stop(int signal) {
    stopping_ = true;
    deadline_ = core::now() + options_.grace;
    next_console_look_ = core::now() + kConsolePatience;
    output_taken_ = consoles_.output.taken();
    error_taken_ = consoles_.error.taken();
    for (Worker& worker : workers_) {
      if (worker.ended) continue;
      worker.was_stopped = true;
      worker.process.signal_group(signal);
    }
  }

  void stop_for(const std::string& trouble) {
    if (result_.trouble.empty()) result_.trouble = trouble;
    if (!stopping_) stop(SIGTERM);
  }

  void hear_nodes() {
    if (!nodes_changed_ || !options_.nodes_stop() || stopping_) return;
    result_.nodes_stopped = true;
    stop(SIGTERM);
  }

  void kill_all() {
    if (killed_) return;
    killed_ = true;
    deadline_ = core::now() + kKillPatience;
    for (Worker& worker : workers_) {
      if (!worker.ended) worker.process.signal_group(SIGKILL);
    }
  }

  void start_store_server() {
    try {
      store_server_.emplace(core::Process::spawn(store_server(options_.store_fd)));
    } catch (const core::Error& error) {
      options_.store_fd = -1;
      stop_for(
          fmt::format("a worker asked for the store, and it cannot be started: {}", error.what()));
    }
  }

  void see_store_server_end() {
    store_server_ended_ = true;
    const std::optional<core::ExitStatus> status = store_server_->ended();
    stop_for(fmt::format("the process that serves the store ended: {}",
                         status ? core::to_text(*status) : "for an unknown reason"));
  }

  std::vector<std::string> last_lines(int local_rank) const {
    for (const Worker& worker : workers_) {
      if (worker.plan->local_rank == local_rank && worker.plan->standard_error.relayed) {
        return worker.relays.back().last_lines();
      }
    }
    return {};
  }

  GroupOptions options_;
  StopSignals& signals_;
  int interrupts_ = 0;
  Consoles consoles_;
  std::size_t output_taken_ = 0, error_taken_ = 0;  // by the consoles, at the last look
  std::vector<Worker> workers_;
  core::Descriptor ends_;  // epoll: the pidfds of workers that run
  std::optional<core::Process> store_server_;
  bool store_server_ended_ = false;
  bool nodes_changed_ = false;
  bool stopping_ = false, killed_ = false, given_up_ = false;
  std::optional<core::SteadyTime> deadline_;  // of the grace period, then of the kill
  core::SteadyTime next_beat_, next_watch_, next_reap_, next_console_look_{};
  GroupEnd result_;
};

}  // namespace

GroupEnd run_group(const std::vector<WorkerPlan>& plans, const GroupOptions& options,
                   StopSignals& signals) {
  return Group(plans, options, signals).run();
}

}  // namespace scaletrain::launcher
