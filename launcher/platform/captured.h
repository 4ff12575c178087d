// Runs a program to its end and keeps its output in memory.
#pragma once

#include <chrono>
#include <string>

#include "launcher/platform/stop_signals.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

struct Captured {
  core::ExitStatus status;
  bool timed_out = false;
  int stop_signal = 0;        // stop signal received meanwhile; 0: none
  std::string output, error;  // at most 1 MiB of each
  double seconds = 0;

  bool ok() const { return !timed_out && stop_signal == 0 && status.ok(); }
  // "exit code 2: the last line of its errors".
  std::string trouble() const;
};

// `request` must not set the three standard streams; the input is empty. Kills the program and its
// process group after `limit` or when `stops` receives a signal. Throws the errors of
// Process::spawn().
Captured run_captured(core::SpawnRequest request, std::chrono::milliseconds limit,
                      StopSignals* stops = nullptr);

}  // namespace scaletrain::launcher
