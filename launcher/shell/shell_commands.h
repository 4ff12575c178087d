// `scaletrain completion` and `scaletrain man`, both made of the command table.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::launcher {

// Adds both commands; they describe `app` as it is when they run, and `scaletrain data`, which is
// asked for its own table.
void add_shell_commands(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
