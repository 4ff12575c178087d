// Samples taken out of shards and written into new ones, field by field and byte by byte.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/data/files/shard_set.h"
#include "app/data/files/shard_writer.h"

namespace scaletrain::app {

// Reads the set in its order with several threads and hands each sample to the writer that
// `writer_of` names by the sample's number, from any thread; nullptr leaves it out. A key that was
// used before gets a number at its end.
void copy_samples(const ShardSet& set, int threads,
                  const std::function<ShardWriter*(std::uint32_t)>& writer_of);

}  // namespace scaletrain::app
