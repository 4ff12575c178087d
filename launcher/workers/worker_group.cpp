#include "launcher/workers/worker_group.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "launcher/place/store_socket.h"
#include "launcher/workers/stop_ladder.h"
#include "launcher/workers/store_service.h"
#include "launcher/workers/worker_output.h"
#include "launcher/workers/worker_set.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;

// Ended orphans of workers are adopted, and would stay as zombies.
constexpr milliseconds kReapEvery{10'000};

// Something that is done at a fixed interval.
struct Periodic {
  milliseconds every;  // 0: never
  core::SteadyTime next = core::now() + every;

  bool is_on() const { return every.count() > 0; }
  bool due(core::SteadyTime now) {
    if (!is_on() || now < next) return false;
    next = now + every;
    return true;
  }
};

// Waits for events of one attempt's workers, and informs the observer.
class Group {
 public:
  Group(const std::vector<WorkerPlan>& plans, const GroupOptions& options, StopSignals& signals)
      : options_(options),
        observer_(options.observer != nullptr ? *options.observer : no_observer_),
        signals_(signals),
        workers_(options.reaper),
        store_(options.store_fd, store_server(options.store_fd)),
        ladder_(options.grace),
        heartbeat_{.every = options.heartbeat_every},
        watch_{.every = options.watch_every},
        reap_{.every = kReapEvery} {
    for (const WorkerPlan& plan : plans) {
      core::SpawnRequest request = plan.process;
      const std::vector<core::Descriptor> child_ends = output_.attach(plan, request);
      observer_.started(plan, workers_.start(plan, std::move(request)));
    }
  }

  GroupEnd run() {
    while (workers_.running() > 0 && !ladder_.given_up()) {
      wait();
      see_ends();
      read_news();  // after the ends: a worker that had failed before was not stopped by the news
      keep_time();
    }
    workers_.end_groups(core::now() +
                        (ladder_.given_up() ? milliseconds(0) : StopLadder::kKillPatience));
    reap_orphans();
    output_.finish();
    for (WorkerEnd& end : result_.workers) end.last_lines = output_.last_lines(end.local_rank);
    return std::move(result_);
  }

 private:
  // Sleeps until something happens, and passes output on.
  void wait() {
    std::vector<pollfd> watched;
    const int nodes_fd = options_.nodes != nullptr ? options_.nodes->changes_fd() : -1;
    for (const int fd : {signals_.fd(), store_.watched_fd(), nodes_fd, workers_.ends_fd()}) {
      watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    }
    const std::size_t others = watched.size();
    output_.watch(watched);
    nodes_changed_ = false;
    if (poll(watched.data(), watched.size(), time_left_ms()) <= 0) return;
    hear_signals();  // before an end that the same signal may have brought about
    if (watched[1].revents != 0) serve_store();
    nodes_changed_ = watched[2].revents != 0;
    output_.advance(std::span(watched).subspan(others));
  }

  // For poll: until the next deadline.
  int time_left_ms() const {
    core::SteadyTime next = reap_.next;
    const auto is_due = [&](std::optional<core::SteadyTime> time) {
      next = std::min(next, time.value_or(next));
    };
    is_due(ladder_.deadline());
    is_due(output_.next_look());
    is_due(output_.late_at());
    if (heartbeat_.is_on()) is_due(heartbeat_.next);
    if (watch_.is_on()) is_due(watch_.next);
    const auto left = std::chrono::ceil<milliseconds>(next - core::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  void hear_signals() {
    while (const std::optional<int> signal = signals_.next()) {
      if (result_.stop_signal == 0) result_.stop_signal = *signal;
      if (*signal == SIGINT) ++interrupts_;
      if (!ladder_.stopping()) {
        const std::size_t count = workers_.running();
        stop(observer_.forwarded(*signal));
        core::log("{}: stopping {}, {:.1f} s for them to finish", core::signal_name(*signal),
                  core::counted(static_cast<std::int64_t>(count), "worker"),
                  std::chrono::duration<double>(options_.grace).count());
      } else if (*signal == SIGINT && interrupts_ == 2) {  // the user sent a second Ctrl-C
        core::log("SIGINT again: killing {}",
                  core::counted(static_cast<std::int64_t>(workers_.running()), "worker"));
        kill();
      }
    }
  }

  void see_ends() {
    std::vector<WorkerEnd> ends = workers_.take_ends();
    // A worker that has lost a peer is not the cause if several ends are seen at once.
    for (const bool is_temporary : {false, true}) {
      for (WorkerEnd& end : ends) {
        const bool is_so = end.status.code == static_cast<int>(core::ExitCode::kTemporary);
        if (is_so == is_temporary && !end.status.ok()) see_failed(end);
      }
    }
    bool failed = false;
    for (WorkerEnd& end : ends) {
      failed = failed || (!end.status.ok() && !end.was_tolerated);
      result_.workers.push_back(std::move(end));
    }
    if (!failed) return;
    observer_.peer_lost();
    if (!ladder_.stopping()) stop(SIGTERM);
  }

  void see_failed(WorkerEnd& end) {
    if (evicted_.contains(end.rank)) {
      end.was_tolerated = true;
      return;
    }
    end.was_tolerated = tolerates_loss(end);
    if (!end.was_tolerated) return;
    report_tolerated(end);
    evict(observer_.evicted_with(end));
  }

  void evict(const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      if (evicted_.insert(rank).second) workers_.kill_one(rank);
    }
  }

  // During a stop, only a worker that another process's signal has ended can be a tolerated loss.
  bool tolerates_loss(const WorkerEnd& end) const {
    const int signal = end.status.signal;
    const bool is_ours = signal == 0 || signal == stop_signal_ || end.was_killed;
    if (ladder_.stopping() && is_ours) return false;
    return observer_.tolerates_loss(end);
  }

  void report_tolerated(WorkerEnd& end) {
    end.last_lines = output_.last_lines(end.local_rank);
    const auto hang = hangs_.find(end.rank);
    observer_.loss_tolerated(end,
                             hang == hangs_.end() ? std::nullopt : std::optional(hang->second));
  }

  void read_news() {
    if (!nodes_changed_) return;
    const NodeNews news = options_.nodes->read_news();
    if (news.peer_lost) observer_.peer_lost();
    evict(news.evicted);
    if (!news.stop || ladder_.stopping()) return;
    result_.nodes_stopped = true;
    stop(SIGTERM);
  }

  void serve_store() {
    const std::string trouble = store_.advance();
    if (!trouble.empty()) stop_for(trouble);
  }

  void keep_time() {
    const core::SteadyTime now = core::now();
    output_.show_late(now);
    const StopLadder::Step step = ladder_.due(now);
    if (step == StopLadder::Step::kKill) kill();
    if (step == StopLadder::Step::kGiveUp) {
      core::warn("a worker hangs in the kernel and cannot be killed");
    }
    output_.look(now);
    if (reap_.due(now)) reap_orphans();
    if (heartbeat_.due(now)) {
      const std::string trouble = observer_.heartbeat();
      if (!trouble.empty()) stop_for(trouble);
    }
    if (watch_.due(now)) watch();
  }

  void watch() {
    if (ladder_.stopping()) return;
    std::optional<Hang> hang = observer_.watch(workers_.views());
    if (!hang) return;
    const WorkerEnd killed{.rank = hang->rank,
                           .local_rank = hang->local_rank,
                           .pid = hang->pid,
                           .status = {.signal = SIGKILL}};
    if (tolerates_loss(killed)) {
      workers_.kill_one(killed.rank);
      hangs_.insert_or_assign(killed.rank, *std::move(hang));
    } else {
      result_.hang = std::move(hang);
      kill();
    }
  }

  void stop(int signal) {
    stop_signal_ = signal;
    ladder_.ask(core::now());
    output_.begin_patience(core::now());
    workers_.signal(signal);
  }

  void stop_for(const std::string& trouble) {
    if (result_.trouble.empty()) result_.trouble = trouble;
    if (!ladder_.stopping()) stop(SIGTERM);
  }

  void kill() {
    if (!ladder_.stopping()) output_.begin_patience(core::now());
    if (ladder_.kill(core::now())) workers_.signal(SIGKILL);
  }

  void reap_orphans() const {
    std::vector<pid_t> others = options_.other_children;
    if (const std::optional<pid_t> store = store_.pid()) others.push_back(*store);
    workers_.reap_orphans(std::move(others));
  }

  const GroupOptions& options_;
  GroupObserver no_observer_;
  GroupObserver& observer_;
  StopSignals& signals_;
  int interrupts_ = 0;
  WorkerOutput output_;
  WorkerSet workers_;
  StoreService store_;
  StopLadder ladder_;
  int stop_signal_ = 0;  // signal sent to the workers
  Periodic heartbeat_, watch_, reap_;
  bool nodes_changed_ = false;
  std::map<int, Hang> hangs_;  // keyed by rank, for workers whose loss is tolerated
  std::set<int> evicted_;      // ranks that were killed because of a tolerated loss
  GroupEnd result_;
};

}  // namespace

GroupEnd run_group(const std::vector<WorkerPlan>& plans, const GroupOptions& options,
                   StopSignals& signals) {
  return Group(plans, options, signals).run();
}

}  // namespace scaletrain::launcher
