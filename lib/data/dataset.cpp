#include "lib/data/dataset.h"

#include "lib/core/error.h"
#include "lib/core/hash.h"
#include "lib/data/folder.h"
#include "lib/data/shards.h"

namespace scaletrain::data {
namespace {

// Eight bytes, least significant first, whatever the machine.
void append_number(std::string& text, std::int64_t number) {
  for (int shift = 0; shift < 64; shift += 8) {
    text += static_cast<char>(static_cast<std::uint64_t>(number) >> shift & 0xff);
  }
}

}  // namespace

std::shared_ptr<const Dataset> open_dataset(const recipe::Source& source,
                                            const std::string& index_cache,
                                            const std::shared_ptr<const storage::Stores>& stores) {
  if (!source.folder.empty()) return open_folder(source.folder);
  return open_shards(source.shards, index_cache, stores);
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
