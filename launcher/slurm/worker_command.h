// `srun scaletrain worker RECIPE`: the launcher with one child, one task of Slurm's a rank.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

// Adds the command to `app`. Its callback runs inside app.parse(): it sets `exit_status` or throws
// core::Error.
void add_worker_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
