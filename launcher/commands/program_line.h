// Splits a command line into the flags of `scaletrain launch` and the program's own words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Removes the program to run from `words`, the command line from "launch" on, and returns it;
// nullopt if there is none. The program is everything after the first "--"; or, as in torchrun, a
// Python script (train.py) or, after -m, --no-python or --run-path, the first word that is not a
// flag, with everything after it. Scripts and modules are run by `$PYTHON_EXEC -u`, else by the
// first python on PATH; PET_MODULE, PET_NO_PYTHON and PET_RUN_PATH act as the flags if they are 1.
// `launch` is the command whose flags and values are skipped. Throws core::UsageError if there is
// no Python, or for -m together with --no-python.
std::optional<std::vector<std::string>> cut_program(std::vector<std::string>& words,
                                                    const CLI::App& launch);

}  // namespace scaletrain::launcher
