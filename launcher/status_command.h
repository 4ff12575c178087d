// `scaletrain status RUN [--watch] [--json]`: how a run is.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::launcher {

// Adds the command `status` to `app`. Its callback runs inside app.parse(): it prints to standard
// output and sets `exit_status`, or throws core::Error for the caller of parse() to print.
void add_status_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
