// `scaletrain checkpoint export CHECKPOINT OUT --to KIND`: exports a model for another library.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

// Adds `export` to `checkpoint`.
void add_checkpoint_export(CLI::App& checkpoint, int& exit_status);

}  // namespace scaletrain::launcher
