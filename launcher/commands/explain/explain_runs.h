// `explain slurm`, `explain queue` and `explain sweep`: the flags with their origins, and the runs
// that would come of them.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Below `explain`. `words` are what a person typed, less the program; they live as long as the app.
// Nothing is submitted, started or written; what the commands refuse is refused.
void add_explained_runs(CLI::App& explain, const std::vector<std::string>& words, int& exit_status);

}  // namespace scaletrain::launcher
