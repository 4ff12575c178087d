// Expands Slurm's host lists: "gpu[01-03,7],login" is gpu01, gpu02, gpu03, gpu7, login.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// Returns the hosts in order; several brackets in a name multiply. Throws core::UsageError naming
// `place` (the variable) for an invalid list or more than 65,536 hosts.
std::vector<std::string> expand_hostlist(const std::string& place, const std::string& text);

}  // namespace scaletrain::launcher
