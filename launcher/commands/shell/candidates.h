// Completion candidates that may follow the words of a command line, for any shell.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/command_table.h"

namespace scaletrain::launcher {

struct CompletionWord {
  std::string word, help;
};

// `words`: the words after "scaletrain" up to the cursor; the last may be incomplete or "". Returns
// {} if the shell should offer files. --set offers recipe keys and their values, --allow the keys,
// and arguments for runs or checkpoints those below the working directory.
std::vector<CompletionWord> candidates(const core::Command& table,
                                       const std::vector<std::string>& words);

}  // namespace scaletrain::launcher
