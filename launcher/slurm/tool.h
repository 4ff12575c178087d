// One of Slurm's own programs, run to its end.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/core/subprocess.h"

namespace scaletrain::launcher {

struct ToolEnd {
  core::ExitStatus status;
  std::string output;  // its standard output
};

// Runs `words`, the first found on PATH; its standard error is ours. `descriptors` as in
// core::SpawnRequest. Throws core::UsageError where there is no such program.
ToolEnd run_tool(std::vector<std::string> words, std::vector<std::pair<int, int>> descriptors = {});

}  // namespace scaletrain::launcher
