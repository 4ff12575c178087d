// WebDataset tar shards as a Dataset, read by pread at the places that their indexes name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/data/dataset.h"

namespace scaletrain::data {

// Opens every shard and its index. Throws core::DataError: a missing or damaged shard, no samples,
// a damaged classes.json.
std::shared_ptr<const Dataset> open_shards(const std::vector<std::string>& paths,
                                           const std::string& index_cache);

}  // namespace scaletrain::data
