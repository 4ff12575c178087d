// `explain slurm`, `explain queue` and `explain sweep`: the flags with their origins, and the runs
// they would make.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds them to `explain`. `words`: the command line without the program, alive as long as the app.
// Nothing is submitted, started or written; errors are the same as those of the commands.
void add_explained_runs(CLI::App& explain, const std::vector<std::string>& words, int& exit_status);

}  // namespace scaletrain::launcher
