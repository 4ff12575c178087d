// Slurm's own programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/platform/captured.h"

namespace scaletrain::launcher {

// Runs one to its end. UsageError where it is not on PATH.
Captured run_tool(std::vector<std::string> words,
                  std::vector<std::pair<int, int>> descriptors = {});

}  // namespace scaletrain::launcher
