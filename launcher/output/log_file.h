// Appends output that passes through the launcher to a file.
#pragma once

#include <string>
#include <string_view>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

class LogFile {
 public:
  LogFile() = default;  // discards everything
  // Throws core::StorageError; "": discards everything.
  explicit LogFile(std::string path);

  explicit operator bool() const { return static_cast<bool>(file_); }
  // Uses one write(2) if possible. A file that cannot be written (disk full) is abandoned with a
  // warning: the stream itself continues.
  void append(std::string_view text);

 private:
  std::string path_;
  core::Descriptor file_;
};

}  // namespace scaletrain::launcher
