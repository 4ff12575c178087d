// Prefix of a tee'd line.
#pragma once

#include <string>

namespace scaletrain::launcher {

// Returns "[ROLE<local rank>]:", or the template in TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, filled
// in like Python's string.Template: ${role_name}, ${rank} and ${local_rank}, with or without
// braces, and $$ for $; other names are not replaced.
std::string line_prefix(const std::string& role, int rank, int local_rank);

}  // namespace scaletrain::launcher
