// LibTorch's exceptions as ours.
#pragma once

#include <exception>
#include <memory>

#include "lib/core/error.h"

namespace scaletrain::app {

// What `error`, which is none of ours, means on rank `rank`: its text without the C++ stack, as
// core::OutOfMemoryError where device or host memory ran out, otherwise core::InternalError.
std::unique_ptr<core::Error> translate(const std::exception& error, int rank);

}  // namespace scaletrain::app
