#include "launcher/jobs/job.h"

#include <poll.h>

#include <array>

#include "lib/core/clock.h"
#include "lib/core/line_start.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
using std::chrono::milliseconds;

std::optional<int> wait_for_signal(StopSignals& signals, milliseconds time, int fd) {
  std::array<pollfd, 2> watched{pollfd{signals.fd(), POLLIN, 0}, pollfd{fd, POLLIN, 0}};
  poll(watched.data(), watched.size(), time.count() == 0 ? -1 : static_cast<int>(time.count()));
  return signals.next();
}

int run_job(const Job& job, const Placement& placement, const RestartLimits& limits,
            milliseconds grace) {
  const Reaper reaper;
  StopSignals signals(job.facts.more_signals);
  Restarts restarts(limits);
  while (true) {
    Attempt attempt{.placement = placement,
                    .restart = restarts.used(),
                    .max_restarts = limits.most,
                    .first = restarts.used() == 0};
    StoreSocket store{.fd = core::Descriptor(), .port = placement.master_port};
    if (placement.hosts_store()) store = listen_for_store(placement);
    attempt.placement.master_port = store.port;
    attempt.plan = job.attempts.make_plan(attempt);
    AttemptPlan plan = job.attempts.plan_attempt(attempt, store);
    plan.options.grace = grace;
    plan.options.reaper = &reaper;
    const core::SteadyTime start = core::now();
    const GroupEnd end = run_group(plan.workers, plan.options, signals);
    const core::SteadyTime now = core::now();

    job.attempts.attempt_ended(end, plan.workers);
    if (all_succeeded(end, plan.workers.size())) return job.ending.succeeded();
    const bool stopped = end.stop_signal != 0 || !end.trouble.empty();
    const std::optional<Failure> failure = failure_of(job.rules, end, plan.workers);
    if (!end.trouble.empty()) core::log("{}", end.trouble);
    if (!failure) return job.ending.stopped(end);
    if (const std::optional<std::string> refusal = job.ending.refusal(*failure)) {
      job.ending.undo();
      core::leave_bar_of_terminal();
      core::log_line(*refusal);
      return job.rules.exit_status(*failure);
    }
    std::string report = render(*failure);
    std::optional<milliseconds> wait;
    if (!stopped && job.rules.worth_restart(*failure)) {
      wait = restarts.next(now, std::chrono::duration_cast<milliseconds>(now - start));
      if (!wait) report += restarts.refusal();
    }
    job.attempts.attempt_judged(failure, wait ? restarts.text(*wait) : "");
    report += wait ? "\n  " + restarts.text(*wait) : job.ending.give_up(*failure);
    core::leave_bar_of_terminal();
    core::log("{}", report);
    if (!wait) return job.rules.exit_status(*failure);
    if (wait->count() == 0) continue;
    if (const std::optional<int> signal = wait_for_signal(signals, *wait)) {
      return job.ending.stopped({.workers = {}, .stop_signal = *signal});
    }
  }
}

}  // namespace scaletrain::launcher
