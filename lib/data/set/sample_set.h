// What is known of any set of samples, whatever a sample is: how many there are, and what is
// different in another set.
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

  // What the samples of a shard are: a digest of its name, and of labels, sizes or names of its
  // samples in their order, of a lazy set also of the bytes of one; from 0, below 2^52. May open
  // it.
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
