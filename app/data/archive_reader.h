// What libarchive opens: compressed files and archives, one member at a time.
#pragma once

#include <functional>
#include <string>

namespace scaletrain::app {

// The bytes of a file, decompressed where it is (gzip, zstd, xz, bzip2); at most 16 GiB. Throws
// core::DataError.
std::string read_decompressed(const std::string& path);

// Calls `use` with name and bytes of every regular file of a tar, compressed or not, in order.
// Nothing is written to a disk; a member is at most format::kMaxMemberBytes, and a tar that does
// not end is refused. Throws core::DataError.
void for_each_archived(const std::string& path,
                       const std::function<void(const std::string&, std::string)>& use);

}  // namespace scaletrain::app
