// classes.json beside shards: the names of the classes by label, a JSON array of strings.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::data {

// Empty when there is no such file in `folder`. Throws core::DataError for a damaged one.
std::vector<std::string> read_classes(const std::string& folder);

}  // namespace scaletrain::data
