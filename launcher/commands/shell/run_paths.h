// Run folders and checkpoints on this machine, for completion.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// Returns the run folders whose paths start with `typed`, sorted: beside it, and below runs/ as
// long as no other folder is typed. With `checkpoints` also those in a run folder that is typed.
std::vector<std::string> run_paths(const std::string& typed, bool checkpoints);

}  // namespace scaletrain::launcher
