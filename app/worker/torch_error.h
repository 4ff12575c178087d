// LibTorch's exceptions as ours.
#pragma once

#include <exception>
#include <memory>

#include "lib/core/error.h"

namespace scaletrain::app {

// Translates an exception that is not a core::Error, on rank `rank`: keeps its text without the C++
// stack, as core::OutOfMemoryError if device or host memory ran out, as core::Error with kMemory if
// no thread could be started, otherwise as core::InternalError.
std::unique_ptr<core::Error> translate(const std::exception& error, int rank);

}  // namespace scaletrain::app
