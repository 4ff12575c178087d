// `scaletrain checkpoint import SOURCE OUT`: imports weights as a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds `import` to `checkpoint`. It runs the worker, which can build the model, with the `words`
// after "checkpoint", which must live as long as `checkpoint`.
void add_checkpoint_import(CLI::App& checkpoint, const std::vector<std::string>& words);

}  // namespace scaletrain::launcher
