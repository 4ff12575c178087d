// Completion scripts for shells; they call `scaletrain completion candidates`.
#pragma once

#include <string>

namespace scaletrain::launcher {

// "bash", "zsh" or "fish". Throws core::UsageError for another shell.
std::string completion_script(const std::string& shell);

}  // namespace scaletrain::launcher
