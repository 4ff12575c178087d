// The versions that `scaletrain --version` prints. Part of the program, not of a library, so that a
// new commit relinks only one program.
#pragma once

#include <string>

namespace scaletrain::launcher {

// Returns the commit of the checkout, or "unknown"; scripts/cmake/write_commit.cmake writes the
// source.
const char* commit();

// Returns five lines: scaletrain, commit, LibTorch, CUDA, NCCL.
std::string build_version();

}  // namespace scaletrain::launcher
