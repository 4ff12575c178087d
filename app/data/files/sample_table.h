// Per-sample tables of the commands: numbers of fixed size, so that 100 million samples fit into
// memory (docs/reference/data.md has the figures).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/data/files/shard_set.h"

namespace scaletrain::app {

// Place of a sample in a set: 12 bytes.
struct SamplePlace {
  std::uint32_t shard = 0;
  std::uint32_t block = 0;  // 512-byte block of its image's header
  std::uint32_t label = 0;
};

SamplePlace place_of(const ShardFile& shard, const FoundSample& sample);

// Returns the keys of samples, read from their headers; opens each shard once.
std::vector<std::string> keys_at(const ShardSet& set, const std::vector<SamplePlace>& places);

// Returns "SHARD: KEY" of each, for messages.
std::vector<std::string> shown_samples(const ShardSet& set, const std::vector<SamplePlace>& places);

// XXH3 of the image's bytes with two seeds: 128 bits make accidental equality unlikely.
struct ContentHash {
  std::uint64_t high = 0, low = 0;

  bool operator==(const ContentHash&) const = default;
  bool operator<(const ContentHash& other) const {
    return high != other.high ? high < other.high : low < other.low;
  }
};
ContentHash content_hash(std::string_view bytes);

// Hashes of samples, 28 bytes for each.
struct HashedSamples {
  std::vector<SamplePlace> places;
  std::vector<ContentHash> hashes;
};

// Hashes every sample of the set, in order. `also` is called for each sample too.
HashedSamples hash_samples(const ShardSet& set, int threads,
                           const std::function<void(const FoundSample&, ContentHash)>& also = {});

// Groups of samples with the same image: ascending numbers, groups ordered by their first.
using SampleSets = std::vector<std::vector<std::uint32_t>>;
SampleSets equal_sets(const std::vector<ContentHash>& hashes);

}  // namespace scaletrain::app
