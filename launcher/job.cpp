#include "launcher/job.h"

#include <poll.h>

#include <algorithm>
#include <array>

#include "lib/core/clock.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
using std::chrono::milliseconds;

std::optional<Failure> failure_of(const Job& job, const GroupEnd& end,
                                  const std::vector<WorkerPlan>& plans) {
  if (end.stop_signal == 0 && !end.nodes_stopped && end.trouble.empty()) {
    return first_failure(end, plans);
  }
  GroupEnd failed = end;
  failed.workers.erase(
      std::remove_if(failed.workers.begin(), failed.workers.end(),
                     [&](const WorkerEnd& worker) { return !job.failed_while_stopping(worker); }),
      failed.workers.end());
  return first_failure(failed, plans);
}

bool all_succeeded(const GroupEnd& end, std::size_t workers) {
  return end.stop_signal == 0 && end.trouble.empty() && end.workers.size() == workers &&
         std::all_of(end.workers.begin(), end.workers.end(),
                     [](const WorkerEnd& worker) { return worker.status.ok(); });
}

std::optional<int> wait_or_hear(StopSignals& signals, milliseconds time, int fd) {
  std::array<pollfd, 2> watched{pollfd{signals.fd(), POLLIN, 0}, pollfd{fd, POLLIN, 0}};
  poll(watched.data(), watched.size(), time.count() == 0 ? -1 : static_cast<int>(time.count()));
  return signals.next();
}

int run_job(Job& job, const Placement& placement, const RestartLimits& limits, milliseconds grace) {
  StopSignals signals(job.more_signals());
  Restarts restarts(limits);
  while (true) {
    Attempt attempt{.placement = placement,
                    .restart = restarts.used(),
                    .max_restarts = limits.most,
                    .first = restarts.used() == 0};
    StoreSocket store{.fd = core::Descriptor(), .port = placement.master_port};
    if (placement.hosts_store()) store = listen_for_store(placement);
    attempt.placement.master_port = store.port;
    attempt.plan = job.make_plan(attempt);
    const std::vector<WorkerPlan> plans = job.plan_attempt(attempt, store);
    GroupOptions options = job.group_options(store);
    options.grace = grace;
    const core::SteadyTime start = core::now();
    const GroupEnd end = run_group(plans, options, signals);
    const core::SteadyTime now = core::now();

    job.attempt_ended(end, plans);
    if (all_succeeded(end, plans.size())) return job.succeeded();
    const bool stopped = end.stop_signal != 0 || !end.trouble.empty();
    const std::optional<Failure> failure = failure_of(job, end, plans);
    if (!end.trouble.empty()) core::log("{}", end.trouble);
    if (!failure) return job.stopped_status(end);
    std::string report = render(*failure);
    std::optional<milliseconds> wait;
    if (!stopped && job.worth_restart(*failure)) {
      wait = restarts.next(now, std::chrono::duration_cast<milliseconds>(now - start));
      if (!wait) report += restarts.refusal();
    }
    report += wait ? "\n  " + restarts.text(*wait) : job.give_up(*failure);
    core::log("{}", report);
    if (!wait) return job.exit_status(*failure);
    if (wait->count() == 0) continue;
    if (const std::optional<int> signal = wait_or_hear(signals, *wait)) {
      return job.stopped_status({.workers = {}, .stop_signal = *signal});
    }
  }
}

}  // namespace scaletrain::launcher
