// Converts LibTorch's exceptions to core::Error.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "lib/core/error.h"

namespace scaletrain::app {

// Converts an exception that is not a core::Error, on rank `rank`, and keeps its text without the
// C++ stack: core::OutOfMemoryError if device or host memory ran out, core::Error with kMemory if
// no thread could be started, otherwise core::InternalError.
std::unique_ptr<core::Error> translate(const std::exception& error, int rank);

// Runs the body of a command on rank `rank`. Returns the exit code: 0, or that of a translated
// exception, which is logged. A core::Error passes through.
int run_translated(int rank, const std::function<void()>& body);

}  // namespace scaletrain::app
