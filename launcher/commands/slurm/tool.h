// Runs Slurm's programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/platform/captured.h"

namespace scaletrain::launcher {

// Runs a program to its end. Throws core::UsageError if it is not on PATH.
Captured run_tool(std::vector<std::string> words,
                  std::vector<std::pair<int, int>> descriptors = {});

}  // namespace scaletrain::launcher
