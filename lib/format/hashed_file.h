// A new file whose size and SHA-256 are known when its last byte is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "lib/core/disk.h"
#include "lib/core/hash.h"

namespace scaletrain::format {

// What a manifest says of a file.
struct FileEntry {
  std::int64_t bytes = 0;
  std::string sha256;
};

class HashedFile {
 public:
  // Creates `path`; `expected_bytes` > 0 reserves that much of the disk.
  HashedFile(core::Disk& disk, const std::filesystem::path& path, std::int64_t expected_bytes = 0);

  void write(std::span<const std::byte> bytes);

  // Syncs; nothing may be written afterwards.
  FileEntry finish();

 private:
  std::unique_ptr<core::DiskFile> file_;
  core::Sha256 hash_;
  std::int64_t bytes_ = 0;
};

// Size and checksum of the file at `path`, read through once. Throws core::CheckpointError when it
// is absent, not a regular file or not readable.
FileEntry hash_file(const std::filesystem::path& path);

// A whole small file, synced.
FileEntry write_hashed(core::Disk& disk, const std::filesystem::path& path, std::string_view text);

}  // namespace scaletrain::format
