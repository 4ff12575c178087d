// `scaletrain checkpoint inspect|verify PATH [--json]`.
#pragma once

namespace CLI {
class App;
}

namespace scaletrain::launcher {

// Adds the command to `app`; when it is chosen it runs within CLI11's parse, sets `exit_status` and
// lets core::Error out.
void add_checkpoint_commands(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
