// State of a run's folder, as the launcher sees it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace scaletrain::launcher {

// True if the folder holds a run that was started before: checkpoints, or a finished one. A start
// that failed before its first checkpoint leaves none.
bool holds_run(const std::filesystem::path& output);

// Returns a line about a finished run, "step 440, epoch 10, test top-1 98.48 % at step 387";
// nullopt if the run is not finished.
std::optional<std::string> finished_run(const std::filesystem::path& output);

// True if a live job owns the folder, as far as this node can see.
bool is_running(const std::filesystem::path& output);

// The number K of the next logs/attempt_K: 1 + the highest, or the highest itself while it has no
// folder for `first_rank` (another node made it for the same attempt).
int next_attempt(const std::filesystem::path& output, int first_rank);

}  // namespace scaletrain::launcher
