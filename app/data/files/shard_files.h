// Shards for the tools, local or remote: opens, reads and indexes them.
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

// A shard opened for reading by any thread. A remote shard is read in large pieces, a compressed
// one is decompressed when it is opened.
class ShardFile {
 public:
  ShardFile(const storage::Stores& stores, std::string path);

  const std::string& path() const { return path_; }
  const std::string& place() const { return place_; }               // for messages
  std::string name() const;                                         // without its folder
  std::int64_t bytes() const { return object_->identity().bytes; }  // uncompressed tar
  storage::Identity identity() const { return identity_; }          // the file as stored

  // Returns the bytes of a member.
  std::string read(const format::TarMember& member) const;
  void read_at(std::int64_t offset, std::span<std::byte> out) const;

  // Calls `use` for every sample, as format::for_each_group() does.
  std::int64_t for_each_group(const std::function<bool(format::TarGroup)>& use) const;

  // Like for_each_group(), with a few megabytes of samples at a time, which `use` may read from
  // several threads: the blocks of a remote shard are still in memory.
  std::int64_t for_each_batch(const std::function<void(std::vector<format::TarGroup>)>& use) const;

 private:
  std::string path_, place_;
  storage::Identity identity_;
  std::unique_ptr<storage::Object> object_;
  std::unique_ptr<storage::BlockReader> pieces_;  // remote shards only
};

// Version of a file as stored, compressed or not.
storage::Identity identity_of(const storage::Stores& stores, const std::string& path);

// Returns size and SHA-256 of a file as stored, by reading it.
format::FileEntry hash_of(const storage::Stores& stores, const std::string& path);

// Return the folder of a path or URL ("" if none), and a file in such a folder.
std::string folder_of(const std::string& path);
std::string file_in(const std::string& folder, const std::string& name);

// Reads quarantine.json of a folder; empty if there is none. Throws core::CheckpointError for a
// damaged file.
format::Quarantine read_quarantine(const storage::Stores& stores, const std::string& folder);

struct IndexedShard {
  std::size_t samples = 0;
  std::int64_t bytes = 0;
};

// Writes the index of a shard beside it, or in the folder `cache`; not for a shard in quarantine.
// `sha256`: hash of the shard, "" if not computed, which keeps the hash of the replaced index.
IndexedShard write_index(const storage::Stores& stores, const std::string& path,
                         const std::string& cache, const std::string& sha256, int threads = 1);

}  // namespace scaletrain::app
