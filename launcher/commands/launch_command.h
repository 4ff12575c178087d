// Code that launch, resume, explain and the Slurm commands share: flags for recipes, and running a
// job by the flags.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

struct Job;
struct LaunchOptions;
struct Placement;

// Runs the job with the restarts, the grace period and, on several nodes, the times of `options`;
// the result is the exit status. Throws core::Error.
int run_launched(const Job& job, const Placement& placement, const LaunchOptions& options);

// Runs the recipe `options.path`, or with `resume_command` continues the run or checkpoint of that
// path; the result is the exit status. Throws core::Error.
int launch_recipe(const LaunchOptions& options, bool resume_command);

// The flags for recipes that launch and resume share: --set, --allow, --worker.
void add_recipe_flags(CLI::App& command, LaunchOptions& options);

// The flags of `scaletrain launch`, without what it does.
void declare_launch(CLI::App& launch, LaunchOptions& options);

// Throws core::UsageError for flags that are not for what is launched, a recipe or options.program,
// and for values that are none.
void check_launch_flags(const LaunchOptions& options);

}  // namespace scaletrain::launcher
