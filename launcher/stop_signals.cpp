#include "launcher/stop_signals.h"

#include <sys/signalfd.h>

#include <cerrno>

#include "lib/core/error.h"

namespace scaletrain::launcher {

StopSignals::StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, &before_);
  fd_ = core::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) {
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    throw core::InternalError("signalfd", core::errno_text(error),
                              "raise the limit of open files: ulimit -n");
  }
}

StopSignals::~StopSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> StopSignals::next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace scaletrain::launcher
