// Checks names and addresses of hosts.
#pragma once

#include <string>

namespace scaletrain::core {

// Throws core::UsageError at `place` if `host` is not a host name or address: empty, or with
// blanks, control characters, brackets or a slash.
void check_host(const std::string& place, const std::string& host);

}  // namespace scaletrain::core
