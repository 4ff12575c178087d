#include "lib/data/set/stored_index.h"

#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/storage/block_reader.h"

namespace scaletrain::data {
namespace {

constexpr std::int64_t kMaxIndexBytes = std::int64_t{1} << 32;

// False if the folder is not writable.
bool write_index(const std::string& path, const std::string& index_cache, std::string_view bytes) {
  core::Disk& disk = core::system_disk();
  try {
    if (!index_cache.empty()) disk.make_folders(index_cache);
    core::write_durably(disk, path, bytes);
    return true;
  } catch (const core::StorageError&) {
    return false;
  }
}

// Reads the index beside a remote shard, if there is one.
std::optional<std::string> index_beside(const std::string& shard_path,
                                        const storage::Identity& shard,
                                        const storage::Storage& storage) {
  const std::string path = shard_path + ".idx";
  try {
    const auto index = storage.open(path);
    if (index->identity().mtime_ns < shard.mtime_ns) return std::nullopt;
  } catch (const core::Error&) {  // usually there is none; problems of the server show up later
    return std::nullopt;
  }
  auto bytes = storage::read_if_there(storage, path, kMaxIndexBytes);
  if (!bytes) return std::nullopt;
  return format::index_of_copy(std::move(*bytes), version_of(shard));
}

// Maps an index that exists in memory only.
std::optional<format::MappedIndex> map_bytes(std::string_view bytes, format::ShardVersion version) {
  const core::Descriptor file = core::make_memory_file("index", bytes);
  return format::MappedIndex::open(core::path_of(file.get()), version);
}

}  // namespace

StoredIndex::StoredIndex(const std::string& shard_path, const storage::Object& shard,
                         const std::string& index_cache, const storage::Storage& storage,
                         const std::vector<std::string>& excluded, const format::LabelRule& rule) {
  const bool is_remote = core::is_url(shard_path);
  format::ShardVersion version = version_of(shard.identity());
  version.excluded = format::excluded_digest(excluded) ^ rule.digest();
  const bool has_place = !is_remote || !index_cache.empty();
  const std::string path = format::index_path(shard_path, index_cache);
  if (has_place) mapped_ = format::MappedIndex::open(path, version);
  if (mapped_) return;
  if (is_remote) {
    if (const auto bytes = index_beside(shard_path, shard.identity(), storage)) {
      mapped_ = map_bytes(*bytes, version);
      if (mapped_ && has_place) write_index(path, index_cache, *bytes);
      if (mapped_) return;
    }
  }
  build(shard_path, shard, excluded, rule);
  const std::string sha256 = has_place ? format::recorded_sha256(path, version) : "";
  if (has_place && write_index(path, index_cache, format::encode_index(built_, version, sha256))) {
    mapped_ = format::MappedIndex::open(path, version);
  }
  if (mapped_) built_ = {};
}

void StoredIndex::build(const std::string& shard_path, const storage::Object& shard,
                        const std::vector<std::string>& excluded, const format::LabelRule& rule) {
  const storage::BlockReader blocks(shard);
  const bool is_remote = core::is_url(shard_path);
  std::int64_t left_out = 0;
  built_ = format::index_shard(
      core::shown_path(shard_path), shard.identity().bytes,
      [&](std::int64_t offset, std::span<std::byte> out) {
        is_remote ? blocks.read(offset, out) : shard.read(offset, out);
      },
      excluded, 1, rule, &left_out);
  if (left_out > 0) {
    core::warn("{}: {} without an image or a label {} left out (data.bad_samples)",
               core::shown_path(shard_path), core::counted(left_out, "sample"),
               left_out == 1 ? "is" : "are");
  }
}

format::ShardVersion version_of(const storage::Identity& identity) {
  return {identity.bytes,
          identity.etag.empty() ? identity.mtime_ns
                                : static_cast<std::int64_t>(core::xxh3_64(identity.etag)),
          0};
}

}  // namespace scaletrain::data
