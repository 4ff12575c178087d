// `scaletrain explain launch ...`: every value that a launch would use and where it came from.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::launcher {

// Adds the command; the result is its `launch`, which knows the flags for cut_program. `words` are
// what a person typed, less the program, and `program` what cut_program found, both set before
// app.parse(). Its callback prints and starts nothing; it throws what a launch would refuse.
CLI::App* add_explain_command(CLI::App& app, const std::vector<std::string>& words,
                              const std::optional<std::vector<std::string>>& program,
                              int& exit_status);

}  // namespace scaletrain::launcher
