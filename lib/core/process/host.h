// Names and addresses of hosts, as a person or a scheduler writes them.
#pragma once

#include <string>

namespace scaletrain::core {

// Throws core::UsageError of `place` for what is no host name or address: nothing at all, blanks or
// control characters, brackets, a slash.
void check_host(const std::string& place, const std::string& host);

}  // namespace scaletrain::core
