// Foreign names of our commands and flags (torchrun, accelerate, mpirun, Slurm, webdataset, git):
// for a hint after a mistake, never accepted as names.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// For `word` after `command` ("scaletrain", "scaletrain data check"): our words for it, as
// "--nproc"; "" where none is known.
std::string our_word(std::string_view command, std::string_view word);

}  // namespace scaletrain::core
