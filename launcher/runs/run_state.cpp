#include "launcher/runs/run_state.h"

#include <fmt/format.h>

#include <optional>

#include "launcher/jobs/checks/run_folder.h"
#include "launcher/workers/failure_file.h"
#include "lib/core/disk/lease.h"

namespace scaletrain::launcher {
namespace {

// Returns "rank 1 failed first: killed by SIGKILL (host a)", or the description of a hang.
std::string verdict_of(const FailureFile& failure) {
  if (!failure.hang.empty()) return failure.cause;
  std::string text = fmt::format("rank {} failed first: {} (host {})", failure.rank,
                                 failure.signal ? "killed by " + *failure.signal
                                                : fmt::format("exit code {}", failure.exit_code),
                                 failure.host);
  if (!failure.cause.empty()) text += ": " + failure.cause.substr(0, failure.cause.find('\n'));
  return text;
}

}  // namespace

RunState run_state(const std::filesystem::path& run) {
  const std::optional<core::LeaseView> lease = core::view_lease(run / "lease.json");
  if (is_running(run)) return {.state = "running"};
  if (const std::optional<std::string> how = finished_run(run)) {
    return {.state = "finished", .why = *how};
  }
  if (lease) {
    return {.state = "dead",
            .why = fmt::format("the launcher, pid {} on host {}, has gone without a word",
                               lease->pid, lease->host)};
  }
  if (const std::optional<FailureFile> failure = read_failure(run)) {
    return {.state = "failed", .why = verdict_of(*failure)};
  }
  return {.state = "stopped"};
}

}  // namespace scaletrain::launcher
