// classes.json beside shards: the class names by label, a JSON array of strings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/storage/storage.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

// Returns {} if `folder` of `storage` has no such file. Throws core::DataError for a damaged one.
std::vector<std::string> read_classes(const std::string& folder,
                                      const storage::Storage& storage = storage::file_storage());

// Reads the class names of all folders of `shards`; {} if none has any. Commands ("pipe:") have no
// folder. Throws core::DataError also if two folders differ: a label means one class in a set.
std::vector<std::string> shared_classes(const std::vector<std::string>& shards,
                                        const storage::Stores& stores);

// Returns the path of classes.json beside a shard, for messages.
std::string shown_classes_file(const std::string& shard);

// Same as read_classes() for a file of any name, which must exist.
std::vector<std::string> read_classes_file(const std::string& path);

// Returns the name of class `number`, or the number as text if there is no name.
std::string class_name(const std::vector<std::string>& classes, std::int64_t number);

// Returns the file's text. Throws core::DataError naming `place` if it would be too large to be
// read again.
std::string encode_classes(const std::vector<std::string>& classes, const std::string& place);

// Writes classes.json in `folder` of `storage` atomically.
void write_classes(const std::string& folder, const std::vector<std::string>& classes,
                   const storage::Storage& storage = storage::file_storage());

}  // namespace scaletrain::data
