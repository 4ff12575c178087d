// A set of samples with random access by number: tar shards with their indexes, a folder with one
// sub-folder per class, a subset of either, or several of them together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/recipe/recipe.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

// One sample's bytes as stored.
struct RawSample {
  std::string image;  // the encoded file
  std::int64_t label = 0;
  std::string shard;              // name of the tar (core::tar_name), or of the class's folder
  std::string key;                // WebDataset key, or file name
  std::int64_t offset = 0;        // of the image in the shard, for messages
  std::string extension;          // of the image, lower-case, without dot
  std::int64_t stored_shard = 0;  // of a sample of a subset: its shard in the whole set
};

// Shards of a set that are drawn from together.
struct DatasetPart {
  std::int64_t shards = 0;
  double weight = 1;      // beside the other parts
  bool balanced = false;  // every class as often as every other
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;  // of a lazy set it opens all
  virtual std::int64_t shard_count() const = 0;
  virtual std::int64_t shard_size(std::int64_t shard) const = 0;  // samples in it; may open it

  // Samples of every shard that is known by now, -1 for the others.
  virtual std::vector<std::int64_t> known_sizes() const;

  // The parts, in the order of their shards.
  virtual std::vector<DatasetPart> parts() const { return {{.shards = shard_count()}}; }

  // Names the shards that will be read next, in this order, so that they can be fetched ahead.
  virtual void announce(const std::vector<std::int64_t>& /*shards*/) const {}

  // The label of a sample, without reading it.
  virtual std::int64_t label(std::int64_t shard, std::int64_t sample) const = 0;

  // Sample `sample` of `shard`, both from 0, in file order, into `raw`, whose memory is used again;
  // any thread. Throws core::DataError naming shard, member and byte.
  virtual void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const = 0;
  RawSample read(std::int64_t shard, std::int64_t sample) const;

  // Where the image, or the label, of a sample that read() gave stands, for messages.
  virtual std::string image_place(std::int64_t shard, const RawSample& sample) const = 0;
  virtual std::string label_place(std::int64_t shard, const RawSample& sample) const = 0;

  // Names of the classes by number, empty when the source has none (classes.json beside the shards,
  // or the folders' names).
  virtual const std::vector<std::string>& classes() const = 0;
};

struct OpenOptions {
  bool lazy = false;  // shards are opened when they are first asked for
  // What is known of a lazy set from before, -1: nothing.
  std::vector<std::int64_t> shard_sizes = {};
  // Where shards are; null: credentials and endpoint of the environment, no cache.
  std::shared_ptr<const storage::Stores> stores = nullptr;
  bool tells = false;  // warns of the files that are left alone in each folder
};

// Opens `source`, building indexes that are missing or stale (checked by size and time). Throws
// core::DataError for a missing or damaged shard, an empty set, no class folder.
std::shared_ptr<const Dataset> open_dataset(const recipe::Source& source,
                                            const std::string& index_cache,
                                            const OpenOptions& options = {});

// Samples of every shard, by number.
std::vector<std::int64_t> shard_sizes(const Dataset& dataset);

// XXH3-64 of (epoch, position, shard base name, key), the term of order_digest.
std::uint64_t sample_digest(std::int64_t epoch, std::int64_t position, const RawSample& sample);

}  // namespace scaletrain::data
