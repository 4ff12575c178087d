#include "launcher/platform/stop_signals.h"

#include <fmt/format.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

std::vector<int> parse_signals(const std::string& flag, const std::string& text) {
  std::vector<int> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    begin = end + 1;
    std::erase(name, ' ');
    int number = 1;
    while (number < SIGRTMIN && core::signal_name(number) != name) ++number;
    if (number >= SIGRTMIN) {
      core::warn("{}: \"{}\" is not a signal of this machine and is ignored", flag,
                 core::printable(name));
      continue;
    }
    if (number == SIGKILL || number == SIGSTOP || number == SIGCHLD) {
      throw core::UsageError(flag, fmt::format("\"{}\" is not allowed", core::printable(name)),
                             "give names of signals that can be caught: SIGTERM,SIGINT,SIGUSR1");
    }
    result.push_back(number);
  }
  return result;
}

namespace {

constexpr std::chrono::milliseconds kLogPatience{1000};

// Blocked, an ignored signal would wait for us all the same.
bool is_ignored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

StopSignals::StopSignals(const std::vector<int>& more) {
  core::limit_log_wait(kLogPatience);  // a thread that waits for the console does not watch `fd`
  std::vector<int> signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  signals.insert(signals.end(), more.begin(), more.end());
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    if (!is_ignored(signal)) sigaddset(&set, signal);
  }
  sigset_t before;
  sigprocmask(SIG_BLOCK, &set, &before);
  fd_ = core::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) {
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    throw core::Error(core::ExitCode::kMemory, "signalfd", core::errno_text(error),
                      "raise the limit of open files: ulimit -n");
  }
}

std::optional<int> StopSignals::next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

int stopped_status(int signal) {
  return static_cast<int>(signal == SIGINT ? core::ExitCode::kInterrupted
                                           : core::ExitCode::kTemporary);
}

void throw_stopped(const std::string& place, int signal) {
  throw core::Error(static_cast<core::ExitCode>(stopped_status(signal)), place,
                    "was stopped by " + core::signal_name(signal));
}

}  // namespace scaletrain::launcher
