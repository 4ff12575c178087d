// A regular file of a checkpoint, read at any place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace scaletrain::format {

// Threads that read a checkpoint at once: hashing and copying cost as much as many disks.
inline constexpr int kReaders = 4;

// Several threads may read from one.
class ByteReader {
 public:
  // Throws core::CheckpointError: absent, not a regular file; as core::throw_read_fault of the
  // machine's faults, which read() does too.
  explicit ByteReader(std::filesystem::path path);
  ~ByteReader();
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  std::int64_t bytes() const { return bytes_; }

  // Fills `out` from byte `position` on. Throws core::CheckpointError where the file ends before.
  void read(std::int64_t position, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::int64_t bytes_ = 0;
};

}  // namespace scaletrain::format
