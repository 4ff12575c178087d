// A program run to its end with its output in memory.
#pragma once

#include <chrono>
#include <string>

#include "launcher/platform/stop_signals.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {

struct Captured {
  core::ExitStatus status;
  bool timed_out = false;
  int stop_signal = 0;        // heard meanwhile; 0: none
  std::string output, error;  // at most 1 MiB of each
  double seconds = 0;

  bool ok() const { return !timed_out && stop_signal == 0 && status.ok(); }
  // "exit code 2: the last line of its errors".
  std::string trouble() const;
};

// `request` says nothing of the three standard streams: the input is empty. Kills the program and
// its process group when `limit` is over, or when `stops` hears a signal. Throws what
// Process::spawn throws.
Captured run_captured(core::SpawnRequest request, std::chrono::milliseconds limit,
                      StopSignals* stops = nullptr);

}  // namespace scaletrain::launcher
