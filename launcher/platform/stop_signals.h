// Signals that stop a job, as a descriptor to poll.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

// Parses "SIGTERM,SIGUSR1". Warns of unknown signals and skips them, as torchrun does. Throws
// core::UsageError naming `flag` for a signal that cannot be caught.
std::vector<int> parse_signals(const std::string& flag, const std::string& text);

// From construction to the end of the process, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2
// and `more` are queued in `fd` instead of ending the process: a late signal must not change its
// exit status. Ignored signals (nohup) stay ignored. Log lines no longer wait for the console
// (core::limit_log_wait).
class StopSignals {
 public:
  explicit StopSignals(const std::vector<int>& more);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }
  // Returns the next queued signal, without waiting.
  std::optional<int> next();

 private:
  core::Descriptor fd_;
};

// Returns the exit status of a command stopped by `signal`: 130 for SIGINT, 75 for any other.
int stopped_status(int signal);

// Throws core::Error with that status: "PLACE: was stopped by SIGTERM".
[[noreturn]] void throw_stopped(const std::string& place, int signal);

}  // namespace scaletrain::launcher
