// `scaletrain checkpoint average A B... -o OUT`: averages the weights of several models into one
// file.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

// Adds `average` to `checkpoint`.
void add_checkpoint_average(CLI::App& checkpoint, int& exit_status);

}  // namespace scaletrain::launcher
