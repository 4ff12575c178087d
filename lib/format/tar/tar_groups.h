// The members of a tar by key, whatever is wrong with them: what the tools look at, where training
// wants whole samples only (lib/format/tar/tar_samples.h).
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

// Members with one key that stand next to one another; a hard link is the file before it that it
// stands for.
struct TarGroup {
  std::string key;
  std::vector<TarField> fields;  // in file order

  // The first field with the extension, or that is an image; nullptr for none.
  const TarField* find(const std::string& extension) const;
  const TarField* image() const;
};

// Calls `use` for every group in file order until it returns false; the number of members that are
// no part of a sample (no regular file, no extension, hidden) comes back. Throws what TarReader
// throws.
std::int64_t for_each_group(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                            const std::function<bool(TarGroup)>& use);

// Every way in which a group is not one sample, in words: "no label", "two images", ...; empty for
// a sound one. The contents of the fields are not checked.
std::vector<std::string> problems_of(const TarGroup& group);

}  // namespace scaletrain::format
