// The commands that a person types to go on with a run as it was started.
#pragma once

#include <filesystem>
#include <string>

#include "launcher/flags/launch_options.h"
#include "launcher/place/placement.h"

namespace scaletrain::launcher {

// With the same numbers of nodes and ranks, for this node where each has its own; `placement` is
// what was asked for, not a round's.
std::string resume_command(const std::filesystem::path& run, const Placement& placement);

// Returns the command that starts the recipe of `options` from the beginning, with its --set; for
// a resumed run it names the recipe in the run's folder.
std::string launch_command(const LaunchOptions& options, const Placement& placement);

}  // namespace scaletrain::launcher
