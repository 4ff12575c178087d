// A worker's whole main: ours, and that of a program with models of somebody's own
// (docs/internals/own-model.md). It includes no header of LibTorch.
#pragma once

#include "app/worker/additions.h"

namespace scaletrain::app {

// Executes the command of `argv` (a usage text names them) and ends the process with its exit code.
[[noreturn]] int worker_main(int argc, char** argv, const Additions& additions);

}  // namespace scaletrain::app
