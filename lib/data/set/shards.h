// WebDataset tar shards as a Dataset, read by pread at the places that their indexes name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/data/set/dataset.h"
#include "lib/data/set/open_options.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

// Opens every shard but those in quarantine, and its index; with options.lazy a shard when it is
// first asked for. Throws core::DataError, then or later: a missing or damaged shard, no samples, a
// damaged classes.json, another number of samples than options.shard_sizes has; core::StorageError:
// a server that does not answer.
std::shared_ptr<const Dataset> open_shards(const std::vector<std::string>& paths,
                                           const std::string& index_cache,
                                           const OpenOptions& options = {});

}  // namespace scaletrain::data
