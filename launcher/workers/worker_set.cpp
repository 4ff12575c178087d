#include "launcher/workers/worker_set.h"

#include <sys/epoll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {

WorkerSet::WorkerSet(const Reaper* reaper) : reaper_(reaper), ends_(epoll_create1(EPOLL_CLOEXEC)) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // for end_groups
  if (!ends_) {
    throw core::Error(core::ExitCode::kMemory, "epoll", core::errno_text(errno),
                      "raise the limit of open files: ulimit -n");
  }
}

pid_t WorkerSet::start(const WorkerPlan& plan, core::SpawnRequest request) {
  if (reaper_ != nullptr) reaper_->take_in(request);
  Worker& worker =
      workers_.emplace_back(Worker{.plan = &plan, .process = core::Process::spawn(request)});
  epoll_event event{.events = EPOLLIN, .data = {.u64 = workers_.size() - 1}};
  if (epoll_ctl(ends_.get(), EPOLL_CTL_ADD, worker.process.pidfd(), &event) != 0) {
    throw core::Error(core::ExitCode::kMemory, "epoll", core::errno_text(errno),
                      "raise fs.epoll.max_user_watches");
  }
  return worker.process.pid();
}

std::size_t WorkerSet::running() const {
  return static_cast<std::size_t>(std::count_if(
      workers_.begin(), workers_.end(), [](const Worker& worker) { return !worker.ended; }));
}

std::vector<RunningWorker> WorkerSet::views() const {
  std::vector<RunningWorker> views;
  views.reserve(workers_.size());
  for (const Worker& worker : workers_) {
    if (worker.ended) continue;
    views.push_back({.rank = worker.plan->rank,
                     .local_rank = worker.plan->local_rank,
                     .pid = worker.process.pid()});
  }
  return views;
}

std::vector<WorkerEnd> WorkerSet::take_ends() {
  std::vector<epoll_event> events(workers_.size());
  const int count =
      epoll_wait(ends_.get(), events.data(), static_cast<int>(events.size()), /*timeout=*/0);
  std::vector<WorkerEnd> ends;
  ends.reserve(events.size());
  for (int i = 0; i < count; ++i) {
    Worker& worker = workers_[events[static_cast<std::size_t>(i)].data.u64];
    const std::optional<core::ExitStatus> status = worker.process.ended();
    if (!status) continue;
    epoll_ctl(ends_.get(), EPOLL_CTL_DEL, worker.process.pidfd(), nullptr);
    worker.ended = true;
    ends.push_back({.rank = worker.plan->rank,
                    .local_rank = worker.plan->local_rank,
                    .pid = worker.process.pid(),
                    .status = *status,
                    .time = core::unix_time(),
                    .was_stopped = worker.was_stopped,
                    .was_killed = worker.was_killed});
  }
  return ends;
}

void WorkerSet::signal(int signal) {
  for (Worker& worker : workers_) {
    if (worker.ended) continue;
    worker.was_stopped = true;
    worker.was_killed = worker.was_killed || signal == SIGKILL;
    worker.process.signal_group(signal);
  }
}

void WorkerSet::kill_one(int rank) {
  for (Worker& worker : workers_) {
    if (worker.ended || worker.plan->rank != rank) continue;
    worker.was_killed = true;
    worker.process.signal_group(SIGKILL);
  }
}

void WorkerSet::end_groups(core::SteadyTime end) {
  for (const Worker& worker : workers_) worker.process.signal_group(SIGKILL);
  for (Worker& worker : workers_) {
    if (!worker.process.end_group(end) && worker.ended) {
      core::warn("rank {}: one of its child processes hangs in the kernel and cannot be killed",
                 worker.plan->rank);
    }
    if (reaper_ != nullptr) reaper_->forget(worker.process.pid());
  }
}

void WorkerSet::reap_orphans(std::vector<pid_t> others) const {
  for (const Worker& worker : workers_) others.push_back(worker.process.pid());
  if (reaper_ != nullptr) others.push_back(reaper_->pid());
  core::reap_orphans(others);
}

}  // namespace scaletrain::launcher
