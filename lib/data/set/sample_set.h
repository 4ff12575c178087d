// Interface of every set of samples, images or tokens: the number of samples, and digests that
// differ in another set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scaletrain::data {

class SampleSet {
 public:
  virtual ~SampleSet() = default;

  virtual std::int64_t size() const = 0;  // samples; of a lazy set it opens all shards
  virtual std::int64_t shard_count() const = 0;

  // Digest of a shard's content: its name and the labels, sizes or names of its samples in order;
  // for a lazy set also the bytes of one sample. Values are 0 .. 2^52 - 1. May open the shard.
  virtual std::int64_t shard_digest(std::int64_t shard) const = 0;

  // Samples of every shard as it is stored that is known by now, -1 for the others.
  virtual std::vector<std::int64_t> known_sizes() const = 0;

  // The digests of a lazy set's shards, as they are stored, that are open by now, -1 for the
  // others.
  virtual std::vector<std::int64_t> open_digests() const { return {}; }

  // Names of the classes by number, empty when the set has none.
  virtual const std::vector<std::string>& classes() const = 0;
};

}  // namespace scaletrain::data
