#include "lib/data/dataset.h"

#include <utility>

#include "lib/core/error.h"
#include "lib/core/hash.h"
#include "lib/core/log.h"
#include "lib/data/folder.h"
#include "lib/data/kept_set.h"
#include "lib/data/mixture.h"
#include "lib/data/shards.h"
#include "lib/data/subset.h"

namespace scaletrain::data {
namespace {

// Eight bytes, least significant first, whatever the machine.
void append_number(std::string& text, std::int64_t number) {
  for (int shift = 0; shift < 64; shift += 8) {
    text += static_cast<char>(static_cast<std::uint64_t>(number) >> shift & 0xff);
  }
}

std::shared_ptr<const Dataset> open_class_folders(const std::string& path, bool tells) {
  LeftAlone left_alone;
  std::shared_ptr<const Dataset> dataset = open_folder(path, &left_alone);
  if (tells && !left_alone.empty()) {
    core::warn("{}: no images, left alone: {}", path, shown_files(left_alone));
  }
  return dataset;
}

std::shared_ptr<const Dataset> open_one(const recipe::Source& source,
                                        const std::string& index_cache,
                                        const OpenOptions& options) {
  std::shared_ptr<const Dataset> dataset = source.folder.empty()
                                               ? open_shards(source.shards, index_cache, options)
                                               : open_class_folders(source.folder, options.tells);
  if (!source.limit || *source.limit >= dataset->size()) return dataset;
  return std::make_shared<Subset>(std::move(dataset), *source.limit);
}

std::shared_ptr<const Dataset> open_all(const recipe::Source& source,
                                        const std::string& index_cache,
                                        const OpenOptions& options) {
  std::vector<Mixture::Member> members;
  for (const recipe::Source& one : source.sources) {
    members.push_back({open_one(one, index_cache, options), one.weight, one.balanced});
  }
  if (members.empty()) {
    std::shared_ptr<const Dataset> dataset = open_one(source, index_cache, options);
    if (!source.balanced) return dataset;
    members.push_back({std::move(dataset), 1, true});
  }
  return std::make_shared<Mixture>(std::move(members));
}

}  // namespace

std::vector<std::int64_t> Dataset::known_sizes() const { return shard_sizes(*this); }

RawSample Dataset::read(std::int64_t shard, std::int64_t sample) const {
  RawSample raw;
  read_into(shard, sample, raw);
  return raw;
}

std::shared_ptr<const Dataset> open_dataset(const recipe::Source& source,
                                            const std::string& index_cache,
                                            const OpenOptions& options) {
  std::shared_ptr<const Dataset> dataset = open_all(source, index_cache, options);
  if (!source.cache) return dataset;
  return std::make_shared<KeptSet>(std::move(dataset), source.cache->max_bytes);
}

std::vector<std::int64_t> shard_sizes(const Dataset& dataset) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < dataset.shard_count(); ++i) sizes.push_back(dataset.shard_size(i));
  return sizes;
}

std::uint64_t sample_digest(std::int64_t epoch, std::int64_t position, const RawSample& sample) {
  std::string text;
  append_number(text, epoch);
  append_number(text, position);
  text += sample.shard;
  text += '\0';  // neither a file name nor a key holds one
  text += sample.key;
  return core::xxh3_64(text);
}

}  // namespace scaletrain::data
