// Compressed tars by their names: .tar.gz, .tgz and .tar.zst.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// True if the file of a path or URL is named as a compressed tar. Output of a command (pipe:) is
// not: its files are the command's business.
bool is_compressed(std::string_view path);

// The name of the tar in a shard: base_name(), and of a compressed one without that ending:
// "a.tar" of "a.tar.gz", "a.tgz" and "a.tar.zst".
std::string tar_name(std::string_view path);

}  // namespace scaletrain::core
