// The script for sbatch: a few #SBATCH lines, and a body that is the same for every run.
//
// The recipe and the flags for `scaletrain launch` are the script's arguments, so no shell reads
// them: sbatch FILE RECIPE [flags]. A value stands in an #SBATCH line only, where it is a comment
// for the shell and a quoted word for sbatch.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain::launcher {

// An option of sbatch without its dashes; nullopt: it takes no value.
using SbatchOption = std::pair<std::string, std::optional<std::string>>;

// Throws core::UsageError naming the option whose value is empty, has more than 1,000 bytes or
// holds a control character: a newline would end its line.
std::string batch_script(const std::vector<SbatchOption>& options);

}  // namespace scaletrain::launcher
