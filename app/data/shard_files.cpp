#include "app/data/shard_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "app/data/in_order.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/data/stored_index.h"
#include "lib/format/shard_index.h"
#include "lib/format/tar_samples.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

std::vector<FoundSample> samples_of(const ShardFile& shard, std::size_t number) {
  std::vector<FoundSample> samples;
  const LeftOut out = left_out_of(shard.path());
  if (out.whole) return samples;
  shard.for_each_group([&](format::TarGroup group) {
    if (std::binary_search(out.keys.begin(), out.keys.end(), group.key)) return;
    const std::string place = fmt::format("{}: {}", shard.path(), format::shown_name(group.key));
    if (const auto problems = format::problems_of(group); !problems.empty()) {
      throw core::DataError(place, fmt::to_string(fmt::join(problems, ", ")),
                            "scaletrain data check tells all that is wrong");
    }
    const auto label = format::parse_label(shard.read(group.find("cls")->member));
    if (!label) {
      throw core::DataError(place, "its label is not a class number",
                            "scaletrain data check tells all that is wrong");
    }
    samples.push_back({number, *label, std::move(group)});
  });
  return samples;
}

}  // namespace

ShardFile::ShardFile(std::string path)
    : path_(std::move(path)), object_(storage::file_storage().open(path_)) {}

std::string ShardFile::name() const { return fs::path(path_).filename().string(); }

std::string ShardFile::read(const format::TarMember& member) const {
  std::string bytes(static_cast<std::size_t>(member.bytes), '\0');
  object_->read(member.data, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::int64_t ShardFile::for_each_group(const std::function<void(format::TarGroup)>& use) const {
  return format::for_each_group(
      path_, bytes(),
      [this](std::int64_t offset, std::span<std::byte> out) { read_at(offset, out); }, use);
}

std::vector<FoundSample> find_samples(const std::vector<ShardFile>& shards, int threads) {
  std::vector<FoundSample> all;
  in_order<std::vector<FoundSample>>(
      static_cast<std::int64_t>(shards.size()), threads,
      [&](std::int64_t i, int) {
        return samples_of(shards[static_cast<std::size_t>(i)], static_cast<std::size_t>(i));
      },
      [&](std::int64_t, std::vector<FoundSample> some) {
        std::move(some.begin(), some.end(), std::back_inserter(all));
      });
  return all;
}

std::vector<ShardFile> open_all(const std::vector<std::string>& paths) {
  std::vector<ShardFile> shards;
  shards.reserve(paths.size());
  for (const std::string& path : paths) shards.emplace_back(path);
  return shards;
}

LeftOut left_out_of(const std::string& shard_path) {
  const fs::path path(shard_path);
  const format::Quarantine list = format::Quarantine::beside(path.parent_path());
  const std::string name = path.filename().string();
  return {list.holds_shard(name), list.keys_of(name)};
}

IndexedShard write_index(const std::string& path, const std::string& cache,
                         const std::string& sha256) {
  const ShardFile shard(path);
  const LeftOut out = left_out_of(path);
  if (out.whole) return {0, shard.bytes()};  // it may be damaged
  const storage::Identity identity = shard.identity();
  const std::vector<format::IndexEntry> entries = format::index_shard(
      path, identity.bytes,
      [&](std::int64_t offset, std::span<std::byte> bytes) { shard.read_at(offset, bytes); },
      out.keys);
  if (!cache.empty()) core::system_disk().make_folders(cache);
  core::write_durably(
      core::system_disk(), data::index_path(path, cache),
      format::encode_index(
          entries, {identity.bytes, identity.mtime_ns, format::excluded_digest(out.keys)}, sha256));
  return {entries.size(), identity.bytes};
}

}  // namespace scaletrain::app
