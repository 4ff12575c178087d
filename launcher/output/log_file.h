// A file for what passes through the launcher, appended to.
#pragma once

#include <string>
#include <string_view>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

class LogFile {
 public:
  LogFile() = default;  // takes nothing
  // Throws core::StorageError; "": takes nothing.
  explicit LogFile(std::string path);

  explicit operator bool() const { return static_cast<bool>(file_); }
  // One write where the file takes all of it. A file that cannot be written (disk full) is given up
  // with a warning: the stream itself goes on.
  void append(std::string_view text);

 private:
  std::string path_;
  core::Descriptor file_;
};

}  // namespace scaletrain::launcher
