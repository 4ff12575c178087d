// "pipe:COMMAND": reads the standard output of a shell command, as in WebDataset, only from front
// to end; with a cache (lib/storage/cache.h) it becomes a file.
#pragma once

#include <chrono>
#include <memory>

#include "lib/storage/storage.h"

namespace scaletrain::storage {

// A command that writes nothing for `stall` fails. Supports only stream(); other functions throw
// core::DataError. The stream ends when the command ends with status 0; any other end is
// core::StorageError.
std::unique_ptr<Storage> make_pipe_storage(std::chrono::seconds stall);

}  // namespace scaletrain::storage
