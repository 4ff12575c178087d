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

// Returns the number K of the next logs/attempt_K: the highest number if its folder for
// `first_rank` is missing (another node created it for the same attempt), otherwise 1 more.
int next_attempt(const std::filesystem::path& output, int first_rank);

}  // namespace scaletrain::launcher
