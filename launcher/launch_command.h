// `scaletrain launch` and `scaletrain resume`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

// Adds both commands to `app`. Their callbacks run inside app.parse(): they set `exit_status` or
// throw core::Error. `program` is what cut_program found on the command line, set before
// app.parse().
void add_launch_commands(CLI::App& app, const std::optional<std::vector<std::string>>& program,
                         int& exit_status);

}  // namespace scaletrain::launcher
