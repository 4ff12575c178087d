// Samples taken out of shards and written into new ones, field by field and byte by byte.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "app/data/shard_files.h"
#include "app/data/shard_writer.h"

namespace scaletrain::app {

// Reads the samples in their order with several threads and hands each to the writer that
// `writer_of` names by the sample's number. A key that was used before gets a number at its end.
void copy_samples(const std::vector<ShardFile>& shards, const std::vector<FoundSample>& samples,
                  const std::vector<std::size_t>& which, int threads,
                  const std::function<ShardWriter&(std::size_t)>& writer_of);

// XXH3 with two seeds of the image's bytes: equal for equal images, 128 bits against accidents.
struct ContentHash {
  std::uint64_t high = 0, low = 0;

  bool operator==(const ContentHash&) const = default;
  bool operator<(const ContentHash& other) const {
    return high != other.high ? high < other.high : low < other.low;
  }
};
ContentHash content_hash(std::string_view bytes);

// Of every sample's image, in order.
std::vector<ContentHash> content_hashes(const std::vector<ShardFile>& shards,
                                        const std::vector<FoundSample>& samples, int threads);

}  // namespace scaletrain::app
