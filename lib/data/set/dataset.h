// A set of samples with random access by number: tar shards with their indexes, a folder with one
// sub-folder per class, a subset of either, or several of them together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/data/set/sample_set.h"

namespace scaletrain::data {

// One sample's bytes as stored.
struct RawSample {
  std::string image;       // the encoded file
  std::int64_t label = 0;  // -1: a list of classes, in `labels`
  std::vector<std::int64_t> labels;
  std::string shard;              // name of the tar (core::tar_name) or of the class folder
  std::string key;                // WebDataset key, or file name
  std::int64_t offset = 0;        // byte in the shard where the image begins, for messages
  std::string extension;          // image format: lower-case, without dot
  std::int64_t stored_shard = 0;  // in a subset: the sample's shard in the whole set
};

// A group of shards that are sampled together.
struct DatasetPart {
  std::int64_t shards = 0;
  double weight = 1;      // relative to the other parts
  bool balanced = false;  // every class is drawn equally often
};

class Dataset : public SampleSet {
 public:
  // Number of samples; may open the shard.
  virtual std::int64_t shard_size(std::int64_t shard) const = 0;
  std::vector<std::int64_t> known_sizes() const override;

  // Returns the parts, in the order of their shards.
  virtual std::vector<DatasetPart> parts() const { return {{.shards = shard_count()}}; }

  // Path or URL of the file that holds `shard`; "" if there is none.
  virtual std::string shard_path(std::int64_t /*shard*/) const { return ""; }

  // Names the shards that will be read next, in this order, so that they can be fetched ahead.
  virtual void announce(const std::vector<std::int64_t>& /*shards*/) const {}

  // Returns the label of a sample without reading it; -1: a list of classes.
  virtual std::int64_t label(std::int64_t shard, std::int64_t sample) const = 0;

  // Reads sample `sample` of `shard` (both from 0, in file order) into `raw`, reusing its memory.
  // May be called from any thread. Throws core::DataError naming shard, member and byte.
  virtual void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const = 0;
  RawSample read(std::int64_t shard, std::int64_t sample) const;

  // Returns the place of the image or label of a sample that read() returned, for messages.
  virtual std::string image_place(std::int64_t shard, const RawSample& sample) const = 0;
  virtual std::string label_place(std::int64_t shard, const RawSample& sample) const = 0;
};

// Returns the number that Dataset::shard_digest() uses for `text`.
std::int64_t digest_number(std::string_view text);

// Returns the number of samples in each shard.
std::vector<std::int64_t> shard_sizes(const Dataset& dataset);

// Returns the XXH3-64 of (epoch, position, base name of the shard, key), which order_digest sums
// up.
std::uint64_t sample_digest(std::int64_t epoch, std::int64_t position, const RawSample& sample);

}  // namespace scaletrain::data
