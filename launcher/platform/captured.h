// A program run to its end with its output in memory.
#pragma once

#include <chrono>
#include <string>

#include "lib/core/subprocess.h"

namespace scaletrain::launcher {

struct Captured {
  core::ExitStatus status;
  bool timed_out = false;
  std::string output, error;  // at most 1 MiB of each
  double seconds = 0;

  bool ok() const { return !timed_out && status.ok(); }
  // "exit code 2: the last line of its errors".
  std::string trouble() const;
};

// `request` says nothing of the three standard streams: the input is empty. Kills the program and
// its process group when `limit` is over. Throws what Process::spawn throws.
Captured run_captured(core::SpawnRequest request, std::chrono::milliseconds limit);

}  // namespace scaletrain::launcher
