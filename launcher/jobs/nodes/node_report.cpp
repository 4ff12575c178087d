#include "launcher/jobs/nodes/node_report.h"

#include <fmt/format.h>

#include "lib/core/clock.h"

namespace scaletrain::launcher {

Report node_report(const Job& job, const GroupEnd& end, const std::vector<WorkerPlan>& plans,
                   int round, int node) {
  Report report{.agent = "", .round = round, .outcome = Outcome::kStopped, .failure = {}};
  report.failure = failure_of(job.rules, end, plans);
  if (report.failure) {
    report.outcome = Outcome::kFailed;
    report.failure->node = node;
  } else if (all_succeeded(end, plans.size())) {
    report.outcome = Outcome::kSucceeded;
  } else if (end.stop_signal != 0 || !end.trouble.empty()) {
    report.signal = end.stop_signal;
    report.reason = end.stop_signal != 0 ? fmt::format("its launcher received {}",
                                                       core::signal_name(end.stop_signal))
                                         : end.trouble;
    report.status = job.ending.stopped(end);
  }
  return report;
}

Report node_report(const core::Error& error, int round, int node) {
  Failure failure{.host = host_name(), .node = node, .rank = -1};
  failure.status.code = static_cast<int>(error.exit_code());
  failure.time = core::unix_time();
  failure.cause = error.what();
  return {.agent = "", .round = round, .outcome = Outcome::kFailed, .failure = std::move(failure)};
}

}  // namespace scaletrain::launcher
