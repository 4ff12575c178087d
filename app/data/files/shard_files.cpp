#include "app/data/files/shard_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/url.h"
#include "lib/data/set/stored_index.h"
#include "lib/format/tar/shard_index.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kBatchSamples = 1024;
constexpr std::int64_t kBatchBytes = 16 << 20;
// Pieces of a batch, and those that its headers were read ahead from.
constexpr std::size_t kKeptPieces = 6;
constexpr std::size_t kHashedPiece = 1 << 20;

}  // namespace

ShardFile::ShardFile(const storage::Stores& stores, std::string path)
    : path_(std::move(path)), place_(core::shown_path(path_)) {
  if (core::is_compressed(path_)) identity_ = identity_of(stores, path_);
  object_ = stores.open(path_);
  if (core::is_compressed(path_)) return;  // it is a local file now
  identity_ = object_->identity();
  if (core::is_url(path_)) {
    pieces_ = std::make_unique<storage::BlockReader>(*object_, kKeptPieces);
  }
}

std::string ShardFile::name() const { return core::base_name(path_); }

void ShardFile::read_at(std::int64_t offset, std::span<std::byte> out) const {
  pieces_ ? pieces_->read(offset, out) : object_->read(offset, out);
}

std::string ShardFile::read(const format::TarMember& member) const {
  std::string bytes(static_cast<std::size_t>(member.bytes), '\0');
  read_at(member.data, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::int64_t ShardFile::for_each_group(const std::function<bool(format::TarGroup)>& use) const {
  return format::for_each_group(
      place_, bytes(),
      [this](std::int64_t offset, std::span<std::byte> out) { read_at(offset, out); }, use);
}

std::int64_t ShardFile::for_each_batch(
    const std::function<void(std::vector<format::TarGroup>)>& use) const {
  std::vector<format::TarGroup> batch;
  std::int64_t begin = 0;  // first byte of the batch
  const std::int64_t ignored = for_each_group([&](format::TarGroup group) {
    if (batch.empty()) begin = group.fields.front().member.begin;
    const format::TarMember& last = group.fields.back().member;
    const std::int64_t bytes = last.data + last.bytes - begin;
    batch.push_back(std::move(group));
    if (batch.size() >= kBatchSamples || bytes >= kBatchBytes) use(std::exchange(batch, {}));
    return true;
  });
  if (!batch.empty()) use(std::move(batch));
  return ignored;
}

storage::Identity identity_of(const storage::Stores& stores, const std::string& path) {
  return stores.of(path).open(path)->identity();
}

format::FileEntry hash_of(const storage::Stores& stores, const std::string& path) {
  const auto file = stores.of(path).stream(path);
  format::Summer summer(format::Sum::kSha256);
  std::vector<std::byte> piece(kHashedPiece);
  while (const std::size_t got = file->read(piece)) {
    summer.update(std::span(piece).first(got));
  }
  return summer.finish();
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

std::string file_in(const std::string& folder, const std::string& name) {
  return folder + (folder.empty() || folder.ends_with('/') ? "" : "/") + name;
}

format::Quarantine read_quarantine(const storage::Stores& stores, const std::string& folder) {
  if (core::url_scheme(folder) == "pipe") return {};  // a command has no folder
  const std::string path = file_in(folder, format::kQuarantineFile);
  const auto text = storage::read_if_there(stores.of(path), path, format::kMaxQuarantineBytes);
  return text ? format::parse_quarantine(*text, core::shown_path(path)) : format::Quarantine();
}

IndexedShard write_index(const storage::Stores& stores, const std::string& path,
                         const std::string& cache, const std::string& sha256, int threads) {
  const ShardFile shard(stores, path);
  const format::Quarantine list = read_quarantine(stores, folder_of(path));
  if (list.holds_shard(shard.name())) return {0, shard.bytes()};  // it may be damaged
  const std::vector<std::string> left_out = list.keys_of(shard.name());
  const storage::Identity identity = shard.identity();
  const std::vector<format::IndexEntry> entries = format::index_shard(
      shard.place(), identity.bytes,
      [&](std::int64_t offset, std::span<std::byte> bytes) { shard.read_at(offset, bytes); },
      left_out, core::url_scheme(path).empty() ? threads : 1);  // a remote one from front to back
  format::ShardVersion version = data::version_of(identity);
  version.excluded = format::excluded_digest(left_out);
  if (!cache.empty()) core::system_disk().make_folders(cache);
  const std::string index = format::index_path(path, cache);
  const std::string known =
      sha256.empty() && !core::is_url(index) ? format::recorded_sha256(index, version) : sha256;
  stores.of(index).write(index, format::encode_index(entries, version, known));
  return {entries.size(), identity.bytes};
}

}  // namespace scaletrain::app
