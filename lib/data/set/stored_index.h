// The index of one shard: read from its file, or built if there is none.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/format/tar/shard_index.h"
#include "lib/storage/storage.h"

namespace scaletrain::data {

class StoredIndex {
 public:
  // Uses the index beside the shard, or in `index_cache` if that is not empty, if it is of this
  // version of the shard. Otherwise reads the shard, warns of incomplete samples, and writes the
  // index there. Several processes may do so at once: the file appears atomically, with the same
  // contents from each. Samples whose keys are `excluded` (sorted bytewise) are left out; `rule`
  // says where labels are.
  //
  // Nothing is written beside a remote shard of `storage`; an index there is used if it is of a
  // shard of this size and not older than the shard.
  StoredIndex(const std::string& shard_path, const storage::Object& shard,
              const std::string& index_cache,
              const storage::Storage& storage = storage::file_storage(),
              const std::vector<std::string>& excluded = {}, const format::LabelRule& rule = {});

  std::span<const format::IndexEntry> entries() const {
    return mapped_ ? mapped_->entries() : built_;
  }
  // True if the index could not be written anywhere: it is built again at every start.
  bool kept_in_memory() const { return !mapped_; }

 private:
  void build(const std::string& shard_path, const storage::Object& shard,
             const std::vector<std::string>& excluded, const format::LabelRule& rule);

  std::optional<format::MappedIndex> mapped_;
  std::vector<format::IndexEntry> built_;
};

// Version of a shard as the index stores it: size and modification time, or a hash of the server's
// ETag in place of the time.
format::ShardVersion version_of(const storage::Identity& identity);

}  // namespace scaletrain::data
