// Compressed tars by their names: .tar.gz, .tgz and .tar.zst.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// True if the file name of a path or URL ends like a compressed tar's (".tar.gz", ".tgz",
// ".tar.zst"). Always false for the output of a command ("pipe:"), which is not decompressed.
bool is_compressed(std::string_view path);

// Returns base_name(), for a compressed tar without the ending of the compression: "a.tar" for
// "a.tar.gz", "a.tgz" and "a.tar.zst".
std::string tar_name(std::string_view path);

}  // namespace scaletrain::core
