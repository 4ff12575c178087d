// A local checkpoint that is read while the run goes on, which may remove it meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "lib/format/byte_reader.h"
#include "lib/format/checkpoint_folder.h"

namespace scaletrain::mirror {

inline constexpr std::int64_t kMaxManifestBytes = 64 << 20;
inline constexpr std::int64_t kPieceBytes = 1 << 20;  // that is read or written at once

class OpenCheckpoint {
 public:
  // Holds all of its files open, so that they can be read to their ends when their names are gone.
  // Throws core::CheckpointError where it is not whole, as core::throw_read_fault of the machine's.
  explicit OpenCheckpoint(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const format::Manifest& manifest() const { return manifest_; }
  const std::string& manifest_text() const { return manifest_text_; }
  const format::ByteReader& file(const std::string& name) const { return files_.at(name); }
  std::int64_t bytes() const;  // of all files but the manifest

  // Hands the file to `take`, piece by piece. Throws core::CheckpointError at its end where it is
  // not what the manifest says.
  void read(const std::string& name,
            const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  std::filesystem::path folder_;
  format::Manifest manifest_;
  std::string manifest_text_;
  std::map<std::string, format::ByteReader> files_;
};

}  // namespace scaletrain::mirror
