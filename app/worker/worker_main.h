// main() of a worker, for the standard one and for custom programs with models of their own
// (docs/internals/own-model.md). Includes no header of LibTorch.
#pragma once

#include "app/worker/additions.h"

namespace scaletrain::app {

// Runs the command in `argv` (listed by a usage text) and ends the process with its exit code.
[[noreturn]] int worker_main(int argc, char** argv, const Additions& additions);

}  // namespace scaletrain::app
