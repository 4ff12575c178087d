// Checks that a run's folder fits the requested start of a run: fresh, newest or named checkpoint.
#pragma once

#include <filesystem>

#include "launcher/jobs/checks/run_request.h"

namespace scaletrain::launcher {

// Returns true if the folder may hold a finished run that is the requested one. Throws
// core::UsageError if the folder does not fit, and core::CheckpointError if the named checkpoint is
// missing or damaged.
bool check_start(const RunRequest& request);

// Returns the verified checkpoint that `path` names: a run, a checkpoint or its parent folder.
// Warns of damaged checkpoints. Throws core::CheckpointError if there is none.
std::filesystem::path named_checkpoint(const std::filesystem::path& path);

}  // namespace scaletrain::launcher
