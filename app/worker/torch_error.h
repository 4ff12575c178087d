// Converts LibTorch's exceptions to core::Error.
#pragma once

#include <exception>
#include <memory>

#include "lib/core/error.h"

namespace scaletrain::app {

// Converts an exception that is not a core::Error, on rank `rank`, and keeps its text without the
// C++ stack: core::OutOfMemoryError if device or host memory ran out, core::Error with kMemory if
// no thread could be started, otherwise core::InternalError.
std::unique_ptr<core::Error> translate(const std::exception& error, int rank);

}  // namespace scaletrain::app
