// classes.json beside shards: the names of the classes by label, a JSON array of strings.
#pragma once

#include <string>
#include <vector>

#include "lib/storage/storage.h"

namespace scaletrain::data {

// Empty when there is no such file in `folder` of `storage`. Throws core::DataError for a damaged
// one.
std::vector<std::string> read_classes(const std::string& folder, const storage::Storage& storage);

}  // namespace scaletrain::data
