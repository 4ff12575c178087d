// The signals that stop a job, as a descriptor to poll.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

// "SIGTERM,SIGUSR1" as numbers. Warns of what is no signal and passes it over, as torchrun does.
// Throws core::UsageError naming `flag` for a signal that cannot be caught.
std::vector<int> parse_signals(const std::string& flag, const std::string& text);

// Once it is constructed, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and `more` wait in
// `fd` instead of ending this process, to its end: one that comes as it leaves must not change its
// exit status. One that was ignored (nohup) stays ignored. Log lines no longer wait for the console
// (core::limit_log_wait).
class StopSignals {
 public:
  explicit StopSignals(const std::vector<int>& more);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }
  // The next signal that was heard; does not wait.
  std::optional<int> next();

 private:
  core::Descriptor fd_;
};

// The exit status of a command that `signal` stopped: 130 for SIGINT, 75 for any other.
int stopped_status(int signal);

// Throws core::Error with that status: "PLACE: was stopped by SIGTERM".
[[noreturn]] void throw_stopped(const std::string& place, int signal);

}  // namespace scaletrain::launcher
