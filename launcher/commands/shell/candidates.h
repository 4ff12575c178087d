// Completion candidates that may follow the words of a command line, for any shell.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/command_table.h"

namespace scaletrain::launcher {

struct CompletionWord {
  std::string word, help;
};

// `words`: what stands after "scaletrain" up to the cursor; the last may be the beginning of a word
// or "". Empty if the shell should offer files. --set offers the keys of recipes and their values,
// --allow the keys, a run or checkpoint those below the working directory.
std::vector<CompletionWord> candidates(const core::Command& table,
                                       const std::vector<std::string>& words);

}  // namespace scaletrain::launcher
