// classes.json of sets that are read and written: labels mean one thing in a set.
#pragma once

#include <string>
#include <vector>

#include "lib/storage/stores.h"

namespace scaletrain::app {

inline constexpr const char* kClassesFile = "classes.json";

// Throws core::DataError where the folder of new shards has other classes already, or where there
// are too many of them for classes.json: to be called before the first shard is written.
void check_classes(const storage::Stores& stores, const std::string& folder,
                   const std::vector<std::string>& classes);

// Writes classes.json where there are classes and it is not there yet, after check_classes(). If
// several commands do so at once, one creates the file; the others throw core::DataError if their
// classes differ from it. In a folder, call it before the shards get their names. Google Cloud
// Storage has no such guard.
void keep_classes(const storage::Stores& stores, const std::string& folder,
                  const std::vector<std::string>& classes);

}  // namespace scaletrain::app
