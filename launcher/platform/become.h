// Replaces this process by another program.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// Executes `path` with `arguments` after its name and default signal handling. Throws
// core::UsageError if it cannot be executed.
[[noreturn]] void become(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace scaletrain::launcher
