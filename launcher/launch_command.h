// `scaletrain launch` and `scaletrain resume`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

class Job;
struct LaunchOptions;
struct Placement;

// Runs the job with the restarts, the grace period and, on several nodes, the times of `options`;
// the result is the exit status. Throws core::Error.
int run_launched(Job& job, const Placement& placement, const LaunchOptions& options);

// The flags for recipes that launch and resume share: --set, --allow, --worker.
void add_recipe_flags(CLI::App& command, LaunchOptions& options);

// The flags of `scaletrain launch`, without what it does.
void declare_launch(CLI::App& launch, LaunchOptions& options);

// Throws core::UsageError for flags that are not for what is launched, a recipe or options.program,
// and for values that are none.
void check_launch_flags(const LaunchOptions& options);

// Adds both commands to `app`. Their callbacks run inside app.parse(): they set `exit_status` or
// throw core::Error. `program` is what cut_program found on the command line, set before
// app.parse().
void add_launch_commands(CLI::App& app, const std::optional<std::vector<std::string>>& program,
                         int& exit_status);

}  // namespace scaletrain::launcher
