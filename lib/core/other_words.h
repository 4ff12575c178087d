// What other programs (torchrun, accelerate, mpirun, Slurm, webdataset, git) call our commands
// and flags: for a hint after a mistake, never as names of ours.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// For `word` after `command` ("scaletrain", "scaletrain data check"): our words for it, as
// "--nproc"; "" where none is known.
std::string our_word(std::string_view command, std::string_view word);

}  // namespace scaletrain::core
