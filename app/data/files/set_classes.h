// Reads and writes classes.json: labels have one meaning in a set.
#pragma once

#include <string>
#include <vector>

#include "lib/storage/stores.h"

namespace scaletrain::app {

inline constexpr const char* kClassesFile = "classes.json";

// Throws core::DataError if the folder of new shards has other classes, or if there are too many
// for classes.json; call before the first shard is written.
void check_classes(const storage::Stores& stores, const std::string& folder,
                   const std::vector<std::string>& classes);

// Writes classes.json if there are classes and no such file, after check_classes(). If several
// commands do so at once, one creates the file; the others throw core::DataError if their classes
// differ. In a folder, call it before the shards are renamed. Google Cloud Storage has no such
// protection.
void keep_classes(const storage::Stores& stores, const std::string& folder,
                  const std::vector<std::string>& classes);

}  // namespace scaletrain::app
