// classes.json beside shards: the names of the classes by label, a JSON array of strings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/storage/storage.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

// Empty when there is no such file in `folder` of `storage`. Throws core::DataError for a damaged
// one.
std::vector<std::string> read_classes(const std::string& folder,
                                      const storage::Storage& storage = storage::file_storage());

// Reads those of all folders of `shards`; empty where none has any. Commands ("pipe:") have no
// folder. Throws core::DataError where two folders have different ones, too: a label means one
// class in a set.
std::vector<std::string> shared_classes(const std::vector<std::string>& shards,
                                        const storage::Stores& stores);

// The path of classes.json beside a shard, for messages.
std::string shown_classes_file(const std::string& shard);

// Same as read_classes() for a file of any name, which must exist.
std::vector<std::string> read_classes_file(const std::string& path);

// The name of class `number`, or the number itself where there is none.
std::string class_name(const std::vector<std::string>& classes, std::int64_t number);

// The file's text. Throws core::DataError naming `place` for one that is too large to be read
// again.
std::string encode_classes(const std::vector<std::string>& classes, const std::string& place);

// Writes classes.json in `folder` of `storage`, whole or not at all.
void write_classes(const std::string& folder, const std::vector<std::string>& classes,
                   const storage::Storage& storage = storage::file_storage());

}  // namespace scaletrain::data
