// Direct I/O: writes a large file past the page cache, at the speed of the disk, while the caller
// produces the next bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "lib/core/descriptor.h"

namespace scaletrain::core {

// Switches `fd` to direct I/O. True if the file system supports it; then all writes must use
// DirectFile.
bool begin_direct(int fd);
// Directs later writes through the page cache. Returns false, with errno set, if that is not
// possible.
bool end_direct(int fd);

class DirectFile {
 public:
  // Writes to `fd`, for which begin_direct() returned true, on a separate thread; `path` is for
  // errors.
  DirectFile(std::filesystem::path path, Descriptor fd);
  ~DirectFile();

  // All functions throw core::StorageError, also for the failure of an earlier write.
  void write(std::span<const std::byte> bytes);
  // Writes bytes that stay valid until sync() or close. They are not copied if they start on a page
  // boundary of both memory and file, or continue the previous ones.
  void write_lasting(std::span<const std::byte> bytes);
  void sync();  // fsync

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::core
