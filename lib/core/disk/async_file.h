// Asynchronous file: reads and writes run in the background while the caller computes.
//
// Bypasses the page cache if the file system allows, with io_uring (Axboe, Efficient IO with
// io_uring, 2019; the kernel's own interface, <linux/io_uring.h>): it transfers many parts of a
// range at a time. Without io_uring in the kernel or the container's permissions, a thread reads
// and writes instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "lib/core/descriptor.h"

namespace scaletrain::core {

// Alignment of memory, file offsets and sizes, in bytes.
inline constexpr std::size_t kAsyncUnit = 4096;

class AsyncFile {
 public:
  enum class Way { kAuto, kRing, kThread };

  // `fd` must be open for reading and writing; `path` is for errors. kRing throws StorageError if
  // there is no io_uring.
  AsyncFile(std::filesystem::path path, Descriptor fd, Way way = Way::kAuto);
  ~AsyncFile();  // waits for running transfers
  AsyncFile(const AsyncFile&) = delete;
  AsyncFile& operator=(const AsyncFile&) = delete;

  // Starts a transfer at file offset `place` and returns its number for wait(). `memory` must stay
  // valid until then. Reads and writes under way must not overlap in the file.
  std::uint64_t read(std::int64_t place, std::span<std::byte> memory);
  std::uint64_t write(std::int64_t place, std::span<const std::byte> memory);
  // Waits for a transfer; returns at once if it was waited for before. Throws StorageError that
  // names the path and the failed operation, also if the file ends before the range.
  void wait(std::uint64_t number);

  bool has_ring() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::core
