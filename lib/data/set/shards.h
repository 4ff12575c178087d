// WebDataset tar shards as a Dataset, read with pread(2) at the offsets in their indexes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/data/set/dataset.h"
#include "lib/data/set/open_options.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

// Opens the index of every shard that is not in quarantine; with options.lazy at first use. Throws
// core::DataError, then or at first use, for a missing or damaged shard, no samples, a damaged
// classes.json, or another number of samples than options.shard_sizes has; core::StorageError if a
// server does not answer.
std::shared_ptr<const Dataset> open_shards(const std::vector<std::string>& paths,
                                           const std::string& index_cache,
                                           const OpenOptions& options = {});

}  // namespace scaletrain::data
