// "pipe:COMMAND": what a shell command writes to its standard output, as in WebDataset. It is read
// from the front to the end only; with a cache (lib/storage/cache.h) it becomes a file.
#pragma once

#include <chrono>
#include <memory>

#include "lib/storage/storage.h"

namespace scaletrain::storage {

// A command that writes nothing for `stall` fails. Only stream() is there; everything else is
// core::DataError. The end of the stream is the end of the command with status 0: any other end is
// core::StorageError.
std::unique_ptr<Storage> make_pipe_storage(std::chrono::seconds stall);

}  // namespace scaletrain::storage
