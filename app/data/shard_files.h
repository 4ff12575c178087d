// Shards as the tools read them: opened, walked through, indexed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/format/quarantine.h"
#include "lib/format/tar_groups.h"
#include "lib/storage/storage.h"

namespace scaletrain::app {

// One shard opened for reading; any thread may read.
class ShardFile {
 public:
  explicit ShardFile(std::string path);

  const std::string& path() const { return path_; }
  std::string name() const;  // without its folder
  std::int64_t bytes() const { return object_->identity().bytes; }
  storage::Identity identity() const { return object_->identity(); }

  // The bytes of a member.
  std::string read(const format::TarMember& member) const;
  void read_at(std::int64_t offset, std::span<std::byte> out) const { object_->read(offset, out); }

  // As format::for_each_group.
  std::int64_t for_each_group(const std::function<void(format::TarGroup)>& use) const;

 private:
  std::string path_;
  std::unique_ptr<storage::Object> object_;
};

// One sound sample of a shard, and where it is.
struct FoundSample {
  std::size_t shard = 0;  // in the list that was searched
  std::int64_t label = 0;
  format::TarGroup group;
};

// Every sample of the shards in order, read by several threads. Throws core::DataError for the
// first that is not whole; what quarantine.json beside a shard names is left out.
std::vector<FoundSample> find_samples(const std::vector<ShardFile>& shards, int threads);

std::vector<ShardFile> open_all(const std::vector<std::string>& paths);

// What quarantine.json beside the shard says of it.
struct LeftOut {
  bool whole = false;
  std::vector<std::string> keys;  // sorted bytewise
};
LeftOut left_out_of(const std::string& shard_path);

struct IndexedShard {
  std::size_t samples = 0;
  std::int64_t bytes = 0;
};

// Writes the index of a shard beside it, or in the folder `cache`; none of a shard in quarantine.
// `sha256` of the shard, "" where nobody computed it.
IndexedShard write_index(const std::string& path, const std::string& cache,
                         const std::string& sha256);

}  // namespace scaletrain::app
