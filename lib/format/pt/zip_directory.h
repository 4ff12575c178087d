// The directory of a zip archive, for entries that are stored as they are, as torch.save writes
// them: a part of such an entry is read in place, whatever its size.
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
  bool is_stored = true;              // false: compressed, which nobody here expands
};

// The entries in the order of their bytes (docs/reference/formats/pt.md has the rules). Nothing is
// read but the directory and the entries' headers. Throws core::CheckpointError naming `place` and
// the rule: an encrypted entry, one that lies over another or outside the file, a name that is
// there twice.
std::vector<ZipEntry> read_zip_directory(const ByteReader& file, const std::string& place);

// Advice in errors about an invalid archive.
inline constexpr const char* kZipRemedy =
    "the file is damaged or was not written by torch.save: use another copy";

}  // namespace scaletrain::format
