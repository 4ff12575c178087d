// Name of this machine, for reports.
#pragma once

#include <string>

namespace scaletrain::core {

// "unknown host" where the system does not say.
std::string host_name();

}  // namespace scaletrain::core
