#include "launcher/jobs/outcome_rules.h"

#include <algorithm>
#include <csignal>
#include <initializer_list>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using core::ExitCode;

bool is_one_of(int code, std::initializer_list<ExitCode> codes) {
  return std::any_of(codes.begin(), codes.end(),
                     [&](ExitCode one) { return static_cast<int>(one) == code; });
}

}  // namespace

bool is_known_to_workers(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGUSR1 || signal == SIGUSR2;
}

bool RecipeRules::worth_restart(const Failure& failure) const {
  return failure.status.signal != 0 ||
         !is_one_of(failure.status.code, {ExitCode::kUsage, ExitCode::kData, ExitCode::kMemory,
                                          ExitCode::kDiverged, ExitCode::kInterrupted});
}

int RecipeRules::exit_status(const Failure& failure) const { return failure.status.shell_code(); }

bool RecipeRules::failed_while_stopping(const WorkerEnd& end) const {
  // A worker that is still starting has no handlers yet and dies of the signal.
  if (end.status.signal != 0) {
    return !is_known_to_workers(end.status.signal) &&
           !(end.was_killed && end.status.signal == SIGKILL);
  }
  return !is_one_of(end.status.code, {ExitCode::kOk, ExitCode::kTemporary, ExitCode::kInterrupted});
}

int ProgramRules::exit_status(const Failure& failure) const {
  return failure.hang.empty() ? 1 : failure.status.shell_code();
}

bool ProgramRules::failed_while_stopping(const WorkerEnd& end) const {
  return !end.was_stopped || (end.status.signal == SIGKILL && !end.was_killed);
}

std::optional<Failure> failure_of(const OutcomeRules& rules, const GroupEnd& end,
                                  const std::vector<WorkerPlan>& plans) {
  if (end.stop_signal == 0 && !end.nodes_stopped && end.trouble.empty()) {
    return first_failure(end, plans);
  }
  GroupEnd failed = end;
  failed.workers.erase(
      std::remove_if(failed.workers.begin(), failed.workers.end(),
                     [&](const WorkerEnd& worker) { return !rules.failed_while_stopping(worker); }),
      failed.workers.end());
  return first_failure(failed, plans);
}

bool all_succeeded(const GroupEnd& end, std::size_t workers) {
  return end.stop_signal == 0 && end.trouble.empty() && end.workers.size() == workers &&
         std::all_of(end.workers.begin(), end.workers.end(), [](const WorkerEnd& worker) {
           return worker.status.ok() || worker.was_tolerated;
         });
}

}  // namespace scaletrain::launcher
