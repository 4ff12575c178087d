#include "launcher/queue/hand_over.h"

#include <poll.h>

#include <cerrno>
#include <sstream>

#include "lib/core/subprocess.h"

namespace scaletrain::launcher {
namespace {

int run_to_end(std::vector<std::string> arguments) {
  const core::Process process =
      core::Process::spawn({.arguments = std::move(arguments), .variables = {}});
  pollfd watch{.fd = process.pidfd(), .events = POLLIN, .revents = 0};
  while (poll(&watch, 1, -1) < 0 && errno == EINTR) {
  }
  return process.ended().value_or(core::ExitStatus{.code = 1}).shell_code();
}

}  // namespace

int hand_to_slurm(const std::vector<QueuedJob>& jobs, const std::string& launcher,
                  const std::string& words) {
  for (const QueuedJob& job : jobs) {
    if (job.state != QueuedJob::State::kWaiting) continue;
    std::vector<std::string> arguments{launcher, "slurm", job.recipe};
    for (const std::string& set : job.set) arguments.insert(arguments.end(), {"--set", set});
    std::istringstream more(words);
    for (std::string word; more >> word;) arguments.push_back(word);
    if (const int status = run_to_end(std::move(arguments)); status != 0) return status;
  }
  return 0;
}

}  // namespace scaletrain::launcher
