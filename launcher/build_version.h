// The versions that `scaletrain --version` prints.
//
// A part of the program and not of the library: a new commit links one program again.
#pragma once

#include <string>

namespace scaletrain::launcher {

// Returns the commit of the checkout, or "unknown"; scripts/cmake/write_commit.cmake writes the
// source.
const char* commit();

// Returns five lines: scaletrain, commit, LibTorch, CUDA, NCCL.
std::string build_version();

}  // namespace scaletrain::launcher
