// Writes a file and computes its size and checksum on the way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "lib/core/disk/disk.h"
#include "lib/core/text/hash.h"

namespace scaletrain::format {

// Checksum of a file: XXH3-128 detects damage at memory speed; SHA-256 is for comparison with other
// tools.
enum class Sum { kXxh3, kSha256 };

// Entry of a file in the manifest.
struct FileEntry {
  std::int64_t bytes = 0;
  std::string sum;  // in hexadecimal
  Sum kind = Sum::kXxh3;
};

// Computes size and checksum of a stream of bytes.
class Summer {
 public:
  explicit Summer(Sum kind);
  void update(std::span<const std::byte> bytes);
  FileEntry finish();

 private:
  std::variant<core::Xxh3, core::Sha256> hash_;
  std::int64_t bytes_ = 0;
};

// Returns size and checksum of bytes in memory.
FileEntry sum_up(std::string_view bytes, Sum kind);

class HashedFile {
 public:
  // Creates `path`; `expected_bytes` > 0 reserves that much of the disk.
  HashedFile(core::Disk& disk, const std::filesystem::path& path, std::int64_t expected_bytes = 0,
             Sum kind = Sum::kXxh3);

  void write(std::span<const std::byte> bytes);
  void write_lasting(std::span<const std::byte> bytes);  // overrides core::DiskFile

  // Syncs; nothing may be written afterwards.
  FileEntry finish();

 private:
  std::unique_ptr<core::DiskFile> file_;
  Summer summer_;
};

// Returns size and checksum of the file at `path`. Throws core::CheckpointError if it is absent,
// not a regular file or not readable.
FileEntry hash_file(const std::filesystem::path& path, Sum kind);

// Returns a file's SHA-256 in hexadecimal.
std::string sha256_of(const std::filesystem::path& path);

// Writes and syncs a small file.
FileEntry write_hashed(core::Disk& disk, const std::filesystem::path& path, std::string_view text);

}  // namespace scaletrain::format
