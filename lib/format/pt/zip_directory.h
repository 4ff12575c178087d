// Reads the directory of a zip archive with uncompressed entries, as torch.save writes them: any
// part of an entry can be read in place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/format/byte_reader.h"

namespace scaletrain::format {

struct ZipEntry {
  std::string name;
  std::int64_t begin = 0, bytes = 0;  // range of the contents, from the start of the file
  std::uint32_t crc32 = 0;            // checksum of the contents; 0: the writer did not compute it
  bool is_stored = true;              // false: compressed, which is not supported
};

// Returns the entries in file order (docs/reference/formats/pt.md has the rules). Reads only the
// directory and the entries' headers. Throws core::CheckpointError naming `place` and the rule for
// an encrypted entry, one that overlaps another or the end of the file, or a repeated name.
std::vector<ZipEntry> read_zip_directory(const ByteReader& file, const std::string& place);

// Advice in errors about an invalid archive.
inline constexpr const char* kZipRemedy =
    "the file is damaged or was not written by torch.save: use another copy";

}  // namespace scaletrain::format
