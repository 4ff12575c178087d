// Opens the set of samples that a recipe names.
#pragma once

#include <memory>
#include <string>

#include "lib/data/set/dataset.h"
#include "lib/data/set/open_options.h"
#include "lib/recipe/sections/data/source.h"

namespace scaletrain::data {

// Opens `source`, building indexes that are missing or stale (checked by size and time). Throws
// core::DataError for a missing or damaged shard, an empty set, no class folder.
std::shared_ptr<const Dataset> open_dataset(const recipe::Source& source,
                                            const std::string& index_cache,
                                            const OpenOptions& options = {});

}  // namespace scaletrain::data
