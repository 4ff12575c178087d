// `scaletrain checkpoint average A B... -o OUT`: averages the weights of several models into one
// file.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds `average` to `checkpoint`.
void add_checkpoint_average(CLI::App& checkpoint, int& exit_status);

}  // namespace scaletrain::launcher
