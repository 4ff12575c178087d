#include "lib/data/stored_index.h"

#include <fmt/format.h>

#include <filesystem>

#include "lib/core/disk.h"
#include "lib/core/hash.h"

namespace scaletrain::data {
namespace {

namespace fs = std::filesystem;

// False where the folder cannot be written.
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

}  // namespace

StoredIndex::StoredIndex(const std::string& shard_path, const storage::Object& shard,
                         const std::string& index_cache) {
  const storage::Identity identity = shard.identity();
  const format::ShardVersion version{identity.bytes, identity.mtime_ns};
  const std::string path = index_path(shard_path, index_cache);
  mapped_ = format::MappedIndex::open(path, version);
  if (mapped_) return;
  built_ = format::index_shard(
      shard_path, identity.bytes,
      [&](std::int64_t offset, std::span<std::byte> out) { shard.read(offset, out); });
  if (write_index(path, index_cache, format::encode_index(built_, version))) {
    mapped_ = format::MappedIndex::open(path, version);
  }
  if (mapped_) built_ = {};
}

std::string index_path(const std::string& shard_path, const std::string& index_cache) {
  if (index_cache.empty()) return shard_path + ".idx";
  const fs::path shard = fs::absolute(shard_path).lexically_normal();
  return (fs::path(index_cache) /
          fmt::format("{}.{:016x}.idx", shard.filename().string(), core::xxh3_64(shard.string())))
      .string();
}

}  // namespace scaletrain::data
