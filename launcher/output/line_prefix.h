// Prefix of a tee'd line.
#pragma once

#include <string>

namespace scaletrain::launcher {

// "[ROLE<local rank>]:", or the template of TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE filled in as
// Python's string.Template does: ${role_name}, ${rank} and ${local_rank}, with or without braces,
// and $$ for $; any other name stays as it is.
std::string line_prefix(const std::string& role, int rank, int local_rank);

}  // namespace scaletrain::launcher
