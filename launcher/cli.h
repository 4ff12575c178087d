// The command line of `scaletrain`, as a library, so that tests can call it.
#pragma once

#include <string>

namespace scaletrain::launcher {

// Runs one command and returns the process's exit status. `version` is what --version prints. Never
// throws.
int run(int argc, char** argv, const std::string& version);

}  // namespace scaletrain::launcher
