// A large file that is written past the page cache: at the speed of the disk, while the caller
// makes the next bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "lib/core/descriptor.h"

namespace scaletrain::core {

// True if the file system of the open descriptor supports direct I/O; then `fd` must be written so.
bool begin_direct(int fd);
// Sends later writes through the page cache. False: it cannot, and errno says why.
bool end_direct(int fd);

class DirectFile {
 public:
  // Writes to `fd`, of which begin_direct() was true, on a thread of its own; `path` is for errors.
  DirectFile(std::filesystem::path path, Descriptor fd);
  ~DirectFile();

  // All throw core::StorageError of what an earlier write has failed with, too.
  void write(std::span<const std::byte> bytes);
  // Bytes that stay until sync() returns or the file is closed: not copied where they begin at a
  // page of memory and of the file, or go on where the last ones ended.
  void write_lasting(std::span<const std::byte> bytes);
  void sync();  // fsync

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::core
