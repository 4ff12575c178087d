// The main function of programs whose commands tests run one after the other.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::parity {

using Command = void (*)(const std::vector<std::string>& words);

// Runs the command of the arguments and returns the exit code of the program; an error goes to
// stderr.
//
// The only argument "serve" runs the command of each line of stdin, its words between tabs, so that
// LibTorch is loaded once. What a command prints is followed by the lines "\x1f STATUS BYTES", with
// the exit code that the program would have had, and BYTES bytes of its error message.
int run_commands(int argc, char** argv, Command run);

}  // namespace scaletrain::parity
