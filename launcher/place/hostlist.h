// Slurm's short form of a list of hosts: "gpu[01-03,7],login" is gpu01, gpu02, gpu03, gpu7, login.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// The hosts in their order; several brackets in a name multiply. Throws core::UsageError naming
// `place` (the variable) where the text is no such list, or has more than 65,536 hosts.
std::vector<std::string> expand_hostlist(const std::string& place, const std::string& text);

}  // namespace scaletrain::launcher
