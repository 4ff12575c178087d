// `scaletrain slurm`: a batch script for a recipe, and the job that came of it.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

// Adds the command to `app`, with its subcommands status, cancel and logs. Their callbacks run
// inside app.parse(): they set `exit_status` or throw core::Error.
void add_slurm_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
