// A large file that is written past the page cache: at the speed of the disk, while the caller
// makes the next bytes.
#pragma once

#include <filesystem>
#include <memory>

#include "lib/core/descriptor.h"
#include "lib/core/disk.h"

namespace scaletrain::core {

// Whether the file system of the open descriptor can do that; then `fd` must be written so.
bool begin_direct(int fd);

// Writes to `fd`, of which begin_direct() was true, on a thread of its own. What a write has failed
// with is thrown by a later call.
std::unique_ptr<DiskFile> make_direct_file(std::filesystem::path path, Descriptor fd);

}  // namespace scaletrain::core
