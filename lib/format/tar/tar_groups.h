// Groups the members of a tar by key, also if they form no valid sample. For tools; training uses
// lib/format/tar/tar_samples.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/format/tar/tar.h"

namespace scaletrain::format {

struct TarField {
  std::string extension;  // lower-case
  TarMember member;
};

// Consecutive members with the same key; a hard link counts as the earlier file to which it points.
struct TarGroup {
  std::string key;
  std::vector<TarField> fields;  // in file order

  // Returns the first field with the extension, or the first image; nullptr if there is none.
  const TarField* find(const std::string& extension) const;
  const TarField* image() const;
};

// Calls `use` for every group in file order until it returns false. Returns the number of members
// that belong to no sample (not a regular file, no extension, hidden). Throws the errors of
// TarReader.
std::int64_t for_each_group(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                            const std::function<bool(TarGroup)>& use);

// Returns all reasons why a group is not a sample: "no label", "two images", ...; {} for a valid
// one. Does not check the contents.
std::vector<std::string> problems_of(const TarGroup& group);

}  // namespace scaletrain::format
