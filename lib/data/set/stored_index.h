// The index of one shard: read where it is stored, built where it is not.
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
  // Takes the index beside the shard, or in `index_cache` where that is not empty, if it is of this
  // very version of the shard; otherwise reads through the shard and writes it there. Several
  // processes may do so at once: the file appears whole, and is the same whoever wrote it. Samples
  // whose keys are `excluded` (sorted bytewise) are left out; labels are where `rule` says. Warns
  // of the incomplete samples that this leaves out, when it reads through the shard.
  //
  // Beside a remote shard of `storage` nothing is written; an index that lies there is taken when
  // it is of a shard of this size and not older than the shard.
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

// "SHARD.tar.idx", or in the cache "NAME.tar.HASH.idx" with a hash of the shard's absolute path or
// URL.
std::string index_path(const std::string& shard_path, const std::string& index_cache);

}  // namespace scaletrain::data
