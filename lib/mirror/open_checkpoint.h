// A local checkpoint that stays readable while the run may remove it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "lib/format/byte_reader.h"
#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::mirror {

inline constexpr std::int64_t kMaxManifestBytes = 64 << 20;
inline constexpr std::int64_t kPieceBytes = 1 << 20;  // read or written at once

class OpenCheckpoint {
 public:
  // Opens all files, so that they can be read completely even after their names are removed. Throws
  // core::CheckpointError if it is incomplete, and core::throw_read_fault's errors for I/O faults.
  explicit OpenCheckpoint(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const format::Manifest& manifest() const { return manifest_; }
  const std::string& manifest_text() const { return manifest_text_; }
  const format::ByteReader& file(const std::string& name) const { return files_.at(name); }
  std::int64_t bytes() const;  // without the manifest

  // Passes the file to `take` piece by piece. Throws core::CheckpointError at the end if the file
  // does not match the manifest.
  void read(const std::string& name,
            const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  std::filesystem::path folder_;
  format::Manifest manifest_;
  std::string manifest_text_;
  std::map<std::string, format::ByteReader> files_;
};

}  // namespace scaletrain::mirror
