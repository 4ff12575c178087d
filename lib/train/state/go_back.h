// Returns a running run to an earlier checkpoint, in the same process.
#pragma once

#include <filesystem>

#include "lib/train/run/run.h"

namespace scaletrain::train {

// Restores weights, optimizer, averages and rank-local state of `checkpoint`, and makes its
// training state run.state. The position in the data stays. No step is queued, and no save is
// pending. Collective.
void go_back(Run& run, const std::filesystem::path& checkpoint);

}  // namespace scaletrain::train
