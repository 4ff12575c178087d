#include "lib/core/process/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace scaletrain::core {
namespace {

constexpr int kInterruptedStatus = 130;
std::atomic<int> heard{0};

void on_signal(int signal) {
  const int reason =
      static_cast<int>(signal == SIGINT ? StopReason::kInterrupt : StopReason::kTerminate);
  int expected = 0;
  const bool first = heard.compare_exchange_strong(expected, reason);
  if (!first && signal == SIGINT && expected == static_cast<int>(StopReason::kInterrupt)) {
    ::_exit(kInterruptedStatus);
  }
}

}  // namespace

void install_stop_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2, SIGINT})
    ::sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

StopReason stop_reason() { return static_cast<StopReason>(heard.load()); }

}  // namespace scaletrain::core
