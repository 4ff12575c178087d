// Code shared by launch, resume, explain and the Slurm commands: flags for recipes, and running a
// job.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

struct Job;
struct LaunchOptions;
struct Placement;

// Runs the job with the restarts, grace period and multi-node timing of `options`. Returns the exit
// status. Throws core::Error.
int run_launched(const Job& job, const Placement& placement, const LaunchOptions& options);

// Runs the recipe `options.path`, or with `resume_command` resumes the run or checkpoint at that
// path. Returns the exit status. Throws core::Error.
int launch_recipe(const LaunchOptions& options, bool resume_command);

// Address of node 0 in the options of a launch that is only checked.
inline constexpr const char* kOpenAddress = "ADDRESS";

// Returns the options with an open address for a fixed number of nodes without one, so that a
// launch can be checked before its nodes are there.
LaunchOptions with_open_address(LaunchOptions options);

// Adds the flags for recipes that launch and resume share: --set, --allow, --worker.
void add_recipe_flags(CLI::App& command, LaunchOptions& options);

// Declares the flags of `scaletrain launch`, without a callback.
void declare_launch(CLI::App& launch, LaunchOptions& options);

// Throws core::UsageError for flags that do not apply to what is launched (a recipe or
// options.program), and for invalid values.
void check_launch_flags(const LaunchOptions& options);

}  // namespace scaletrain::launcher
