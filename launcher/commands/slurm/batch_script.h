// Batch script for sbatch: #SBATCH lines, and a body that is the same for every run.
//
// The recipe and the flags for `scaletrain launch` are arguments of the script (sbatch FILE RECIPE
// [flags]), so no shell parses them. Other values are only in #SBATCH lines, which are comments for
// the shell and quoted words for sbatch.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain::launcher {

// An option of sbatch without its dashes; nullopt: an option without a value.
using SbatchOption = std::pair<std::string, std::optional<std::string>>;

// Returns the script. Throws core::UsageError naming an option whose value is empty, has more than
// 1,000 bytes or has a control character (a newline would end its line).
std::string batch_script(const std::vector<SbatchOption>& options);

}  // namespace scaletrain::launcher
