// `scaletrain doctor`: what of this machine would end a run tonight, in seconds.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::launcher {

// Adds the command. Its callback prints a line for each check and sets `exit_status`: 1 where one
// failed, else 0.
void add_doctor_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
