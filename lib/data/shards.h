// WebDataset tar shards as a Dataset, read by pread at the places that their indexes name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/data/dataset.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

// Opens every shard and its index. Throws core::DataError: a missing or damaged shard, no samples,
// a damaged classes.json; core::StorageError: a server that does not answer.
std::shared_ptr<const Dataset> open_shards(
    const std::vector<std::string>& paths, const std::string& index_cache,
    const std::shared_ptr<const storage::Stores>& stores = std::make_shared<storage::Stores>());

}  // namespace scaletrain::data
