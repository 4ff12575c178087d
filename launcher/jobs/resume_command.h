// Commands for the user that resume or restart a run in the same way.
#pragma once

#include <filesystem>
#include <string>

#include "launcher/flags/launch_options.h"
#include "launcher/place/placement.h"

namespace scaletrain::launcher {

// Returns a command with the same numbers of nodes and ranks, for this node if nodes have different
// ones; `placement` is the requested one, not a round's.
std::string resume_command(const std::filesystem::path& run, const Placement& placement);

// Returns the command that starts the recipe of `options` from the beginning, with its --set; for
// a resumed run it names the recipe in the run's folder.
std::string launch_command(const LaunchOptions& options, const Placement& placement);

}  // namespace scaletrain::launcher
