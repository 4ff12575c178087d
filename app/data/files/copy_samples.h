// Copies samples from shards to new shards, field by field, without changing bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/data/files/shard_set.h"
#include "app/data/files/shard_writer.h"

namespace scaletrain::app {

// Reads the set in order with several threads. `writer_of` chooses the writer by the sample's
// number, from any thread; nullptr skips the sample. A repeated key gets a number at its end.
void copy_samples(const ShardSet& set, int threads,
                  const std::function<ShardWriter*(std::uint32_t)>& writer_of);

}  // namespace scaletrain::app
