#include "launcher/commands/slurm/tool.h"

#include <chrono>
#include <optional>

#include "lib/core/error.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {
namespace {

// A controller that is busy or restarts lets its clients wait for minutes.
constexpr std::chrono::minutes kToolPatience{10};

}  // namespace

Captured run_tool(std::vector<std::string> words, std::vector<std::pair<int, int>> descriptors) {
  const std::optional<std::string> path = core::find_program(words.at(0));
  if (!path) {
    throw core::UsageError(words[0], "is not on PATH", "run this where Slurm's programs are");
  }
  words[0] = *path;
  return run_captured(
      {.arguments = std::move(words), .variables = {}, .descriptors = std::move(descriptors)},
      kToolPatience);
}

}  // namespace scaletrain::launcher
