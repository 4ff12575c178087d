// Decompresses a file into an unnamed temporary file below $TMPDIR, for programs that read it
// once and keep nothing. Its disk space is freed with the object, even if the program
// crashes.
#pragma once

#include <memory>
#include <string>

#include "lib/storage/storage.h"
#include "lib/storage/unpack.h"

namespace scaletrain::storage {

// $TMPDIR is full or not writable: a fault of this machine, not of the file.
struct UnpackRoomError : core::StorageError {
  using StorageError::StorageError;
};

// Decompresses all of `path` before it returns. Throws the errors of `origin` and unpack(), also
// for more than 16 GiB; UnpackRoomError, also for more than half of the free space. The identity is
// that of the new file.
std::unique_ptr<Object> open_unpacked(const Storage& origin, const std::string& path,
                                      Packing packing = Packing::kGzipOrZstd);

}  // namespace scaletrain::storage
