// `scaletrain checkpoint average A B... -o OUT`: the mean of several models, as one file.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds `average` to `checkpoint`.
void add_checkpoint_average(CLI::App& checkpoint, int& exit_status);

}  // namespace scaletrain::launcher
