// Shards as the tools read them, local or remote: opened, walked through, indexed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/format/hashed_file.h"
#include "lib/format/quarantine.h"
#include "lib/format/tar/tar_groups.h"
#include "lib/storage/block_reader.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

// One shard opened for reading; any thread may read. A remote one is read in large pieces, a
// compressed one is decompressed when it is opened.
class ShardFile {
 public:
  ShardFile(const storage::Stores& stores, std::string path);

  const std::string& path() const { return path_; }
  const std::string& place() const { return place_; }               // for messages
  std::string name() const;                                         // without its folder
  std::int64_t bytes() const { return object_->identity().bytes; }  // uncompressed tar
  storage::Identity identity() const { return identity_; }          // the file as stored

  // The bytes of a member.
  std::string read(const format::TarMember& member) const;
  void read_at(std::int64_t offset, std::span<std::byte> out) const;

  // Calls `use` for every sample, as format::for_each_group() does.
  std::int64_t for_each_group(const std::function<bool(format::TarGroup)>& use) const;

  // Same with a few megabytes of samples at a time. `use` may read them from several threads: the
  // blocks of a remote shard that hold them are still in memory.
  std::int64_t for_each_batch(const std::function<void(std::vector<format::TarGroup>)>& use) const;

 private:
  std::string path_, place_;
  storage::Identity identity_;
  std::unique_ptr<storage::Object> object_;
  std::unique_ptr<storage::BlockReader> pieces_;  // remote shards only
};

// Version of a file as stored, compressed or not.
storage::Identity identity_of(const storage::Stores& stores, const std::string& path);

// Size and SHA-256 of a file as it is, read through once.
format::FileEntry hash_of(const storage::Stores& stores, const std::string& path);

// The folder of a path or URL, "" for none; and a file in such a folder.
std::string folder_of(const std::string& path);
std::string file_in(const std::string& folder, const std::string& name);

// quarantine.json of a folder; empty where there is none. Throws core::CheckpointError for a
// damaged one.
format::Quarantine read_quarantine(const storage::Stores& stores, const std::string& folder);

struct IndexedShard {
  std::size_t samples = 0;
  std::int64_t bytes = 0;
};

// Writes the index of a shard beside it, or in the folder `cache`; none of a shard in quarantine.
// `sha256` of the shard, "" where nobody computed it: then that of the index that is replaced
// stays.
IndexedShard write_index(const storage::Stores& stores, const std::string& path,
                         const std::string& cache, const std::string& sha256, int threads = 1);

}  // namespace scaletrain::app
