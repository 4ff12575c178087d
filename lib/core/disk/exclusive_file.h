// Files that only one of several processes or machines can make: locks, and what must not replace.
#pragma once

#include <filesystem>
#include <string_view>

namespace scaletrain::core {

struct Exclusive {
  bool is_made = false;  // false with error 0: the name was taken
  int error = 0;         // errno: it could not be made at all
  int link_error = 0;    // errno of link(2) on a file system without hard links, else 0
};

// Gives the file `temporary`, which holds `bytes`, the name `path` as well if that is free: link(2)
// shows the whole file or none. On a file system without hard links (gcsfuse, SMB) `path` is made
// with O_EXCL and written, so another process may read a part of it for a moment.
Exclusive name_exclusively(const std::filesystem::path& temporary,
                           const std::filesystem::path& path, std::string_view bytes);

}  // namespace scaletrain::core
