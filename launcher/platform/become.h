// Another program in this process's place.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// Executes the program `path` with `arguments` behind its name, and signals as at a program's
// start. Throws core::UsageError where it cannot be executed.
[[noreturn]] void become(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace scaletrain::launcher
