// Compressed tars by their names: .tar.gz, .tgz and .tar.zst.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// True if the file name of a path or URL ends as a compressed tar does (".tar.gz", ".tgz",
// ".tar.zst"). Always false for the output of a command ("pipe:"), which is read as it comes.
bool is_compressed(std::string_view path);

// The name of the tar in a shard: base_name(), and of a compressed one without that ending:
// "a.tar" of "a.tar.gz", "a.tgz" and "a.tar.zst".
std::string tar_name(std::string_view path);

}  // namespace scaletrain::core
