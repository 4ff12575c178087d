// `scaletrain checkpoint export CHECKPOINT OUT --to KIND`: exports a model for another library.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds `export` to `checkpoint`.
void add_checkpoint_export(CLI::App& checkpoint, int& exit_status);

}  // namespace scaletrain::launcher
