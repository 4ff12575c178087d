// The signals that stop a job, as a descriptor to poll.
#pragma once

#include <csignal>
#include <optional>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

// From construction to destruction SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGUSR2 wait in `fd`
// instead of ending this process. One that was ignored (nohup) stays ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_.get(); }
  // The next signal that was heard; does not wait.
  std::optional<int> next();

 private:
  core::Descriptor fd_;
  sigset_t before_{};
};

}  // namespace scaletrain::launcher
