// Splits a command line into the flags of `scaletrain launch` and the program's own words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Splits the program to run off `words`, the command line from "launch" on; nullopt if there is
// none. A program is what follows the first "--", and, as torchrun has it, a Python script
// (train.py) or, after -m, --no-python or --run-path, any word that is no flag, with all that
// follows it. A script and a module are run as `$PYTHON_EXEC -u`, else with the first python on
// PATH; PET_MODULE, PET_NO_PYTHON and PET_RUN_PATH mean the flags where they are 1. `launch` is the
// command whose flags are skipped, with their values. Throws core::UsageError where there is no
// Python, or for -m together with --no-python.
std::optional<std::vector<std::string>> cut_program(std::vector<std::string>& words,
                                                    const CLI::App& launch);

}  // namespace scaletrain::launcher
