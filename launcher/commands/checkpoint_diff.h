// `scaletrain checkpoint diff A B`: compares two sets of weights.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds `diff` to `checkpoint`. The exit status is 0 whether they differ or not.
void add_checkpoint_diff(CLI::App& checkpoint, int& exit_status);

}  // namespace scaletrain::launcher
