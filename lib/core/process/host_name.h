// Name of this machine, for reports.
#pragma once

#include <string>

namespace scaletrain::core {

// Returns "unknown host" if the system does not say.
std::string host_name();

}  // namespace scaletrain::core
