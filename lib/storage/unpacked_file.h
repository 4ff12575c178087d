// Decompresses a file into an unnamed temporary file below $TMPDIR, for programs that read it
// once and keep nothing. Its disk space is freed with the object, even if the program
// crashes.
#pragma once

#include <memory>
#include <string>

#include "lib/storage/storage.h"
#include "lib/storage/unpack.h"

namespace scaletrain::storage {

// Too little room below $TMPDIR, or nothing can be written there: this machine's fault, which says
// nothing about the file.
struct UnpackRoomError : core::StorageError {
  using StorageError::StorageError;
};

// Decompresses all of `path` before it returns. Throws what `origin` and unpack() throw, for more
// than 16 GiB too; UnpackRoomError, for more than half of what is free there too. The identity is
// that of the new file.
std::unique_ptr<Object> open_unpacked(const Storage& origin, const std::string& path,
                                      Packing packing = Packing::kGzipOrZstd);

}  // namespace scaletrain::storage
