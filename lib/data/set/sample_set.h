// Interface of a set of samples, images or tokens: the number of samples, and digests that detect
// another set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scaletrain::data {

class SampleSet {
 public:
  virtual ~SampleSet() = default;

  virtual std::int64_t size() const = 0;  // samples; opens all shards of a lazy set
  virtual std::int64_t shard_count() const = 0;

  // Digest of a shard's content: its name and the labels, sizes or names of its samples in order;
  // for a lazy set also the bytes of one sample. Values are 0 .. 2^52 - 1. May open the shard.
  virtual std::int64_t shard_digest(std::int64_t shard) const = 0;

  // Returns the stored number of samples of every shard, as far as known; -1 for the others.
  virtual std::vector<std::int64_t> known_sizes() const = 0;

  // Returns the stored digests of the shards of a lazy set that are open; -1 for the others.
  virtual std::vector<std::int64_t> open_digests() const { return {}; }

  // Names of the classes by number, empty when the set has none.
  virtual const std::vector<std::string>& classes() const = 0;
};

}  // namespace scaletrain::data
