#include "launcher/job.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

// The verdict on a group that was asked to stop: only a worker that failed in its own way counts.
std::optional<Failure> failure_while_stopping(const Job& job, GroupEnd end,
                                              const std::vector<WorkerPlan>& plans) {
  end.workers.erase(
      std::remove_if(end.workers.begin(), end.workers.end(),
                     [&](const WorkerEnd& worker) { return !job.failed_while_stopping(worker); }),
      end.workers.end());
  return first_failure(end, plans);
}

bool all_succeeded(const GroupEnd& end, std::size_t workers) {
  return end.workers.size() == workers &&
         std::all_of(end.workers.begin(), end.workers.end(),
                     [](const WorkerEnd& worker) { return worker.status.ok(); });
}

}  // namespace

int run_job(Job& job, const Placement& placement, int max_restarts,
            std::chrono::milliseconds grace) {
  StopSignals signals(job.more_signals());
  for (int restart = 0;; ++restart) {
    StoreSocket store{.fd = core::Descriptor(), .port = placement.master_port};
    if (placement.hosts_store()) store = listen_for_store(placement);
    const std::vector<WorkerPlan> plans = job.plan_attempt(restart, max_restarts, store);
    GroupOptions options = job.group_options(store);
    options.grace = grace;
    const GroupEnd end = run_group(plans, options, signals);

    if (end.stop_signal == 0 && end.trouble.empty() && all_succeeded(end, plans.size())) {
      return job.succeeded();
    }
    const bool stopped = end.stop_signal != 0 || !end.trouble.empty();
    const std::optional<Failure> failure =
        stopped ? failure_while_stopping(job, end, plans) : first_failure(end, plans);
    if (!end.trouble.empty()) core::log("{}", end.trouble);
    if (!failure) return job.stopped_status(end);
    const bool again = !stopped && restart < max_restarts && job.worth_restart(*failure);
    std::string report = render(*failure);
    if (again) {
      report += fmt::format("\n  starting again: restart {} of {}", restart + 1, max_restarts);
    } else {
      report += job.give_up(*failure);
    }
    core::log("{}", report);
    if (!again) return job.exit_status(*failure);
  }
}

}  // namespace scaletrain::launcher
