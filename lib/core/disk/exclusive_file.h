// Exclusive files, which only one of several processes or machines can create: locks, and files
// that must not replace others.
#pragma once

#include <filesystem>
#include <string_view>

namespace scaletrain::core {

struct Exclusive {
  bool is_made = false;  // false with error 0: the name exists already
  int error = 0;         // errno: the file could not be created
  int link_error = 0;    // errno of link(2) on a file system without hard links, else 0
};

// Gives the file `temporary`, which contains `bytes`, the additional name `path` if that is free:
// link(2) shows the complete file or none. On a file system without hard links (gcsfuse, SMB),
// `path` is created with O_EXCL and written, so another process may read an incomplete file for a
// moment.
Exclusive name_exclusively(const std::filesystem::path& temporary,
                           const std::filesystem::path& path, std::string_view bytes);

}  // namespace scaletrain::core
