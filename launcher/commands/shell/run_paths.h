// Run folders and checkpoints on this machine, for completion.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// Returns the run folders whose paths start with `typed`, sorted: in the folder of `typed`, and
// below runs/ if no other folder is typed. With `checkpoints`, also the checkpoints of a typed run
// folder.
std::vector<std::string> run_paths(const std::string& typed, bool checkpoints);

}  // namespace scaletrain::launcher
