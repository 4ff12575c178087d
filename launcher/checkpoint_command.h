// `scaletrain checkpoint inspect|verify PATH [--json]`: what a checkpoint holds, and whether it is
// whole.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::launcher {

// Adds the command `checkpoint` with its subcommands to `app`. Their callbacks run inside
// app.parse(): they print to standard output and set `exit_status` (65 when `verify` found a
// damaged checkpoint), or throw core::Error for the caller of parse() to print.
void add_checkpoint_commands(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
