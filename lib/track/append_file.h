// A file that grows by whole blocks: a block that cannot be written leaves the file as it was.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "lib/core/descriptor.h"

namespace scaletrain::track {

class AppendFile {
 public:
  // Makes the folder and an empty file. Throws core::StorageError.
  explicit AppendFile(std::filesystem::path path);

  // Throws core::StorageError, also for a file that was removed meanwhile.
  void append(std::string_view bytes);

  // Replaces the contents atomically, by a rename. Throws core::StorageError.
  void replace(std::string_view bytes);

  std::int64_t bytes() const { return bytes_; }  // of complete blocks
  const std::filesystem::path& path() const { return path_; }

 private:
  void open(int flags);

  std::filesystem::path path_;
  core::Descriptor fd_;
  std::int64_t bytes_ = 0;
};

}  // namespace scaletrain::track
