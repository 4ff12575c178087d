// Reads a regular file of a checkpoint at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace scaletrain::format {

// Threads that read a checkpoint at once: hashing and copying can keep up with several disks.
inline constexpr int kReaders = 4;

// Several threads may read from one object.
class ByteReader {
 public:
  // Throws core::CheckpointError if the file is absent or not regular, and machine faults as
  // core::throw_read_fault() does; so does read().
  explicit ByteReader(std::filesystem::path path);
  ~ByteReader();
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  std::int64_t bytes() const { return bytes_; }

  // Fills `out` from byte `position` on. Throws core::CheckpointError if the file ends before.
  void read(std::int64_t position, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::int64_t bytes_ = 0;
};

}  // namespace scaletrain::format
