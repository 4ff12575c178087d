// Names of commands and flags in other programs (torchrun, accelerate, mpirun, Slurm, webdataset,
// git): used for a hint after a mistake, never accepted.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// Returns our name for `word` after `command` ("scaletrain", "scaletrain data check"), such as
// "--nproc"; "" if none is known.
std::string our_word(std::string_view command, std::string_view word);

}  // namespace scaletrain::core
