// `scaletrain checkpoint reshard CHECKPOINT -o FOLDER`: merges the shards of a checkpoint into
// complete files.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds `reshard` to `checkpoint`.
void add_checkpoint_reshard(CLI::App& checkpoint, int& exit_status);

}  // namespace scaletrain::launcher
