// The command line of `scaletrain`, as a library, so that tests can call it.
#pragma once

namespace scaletrain::launcher {

// Runs one command; the result is the process's exit status. Never throws.
int run(int argc, char** argv);

}  // namespace scaletrain::launcher
