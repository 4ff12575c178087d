#include "app/data/files/shard_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>

#include "lib/core/error.h"
#include "lib/core/parallel.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/url.h"
#include "lib/format/key_set.h"
#include "lib/format/tar/tar_samples.h"

namespace scaletrain::app {
namespace {

constexpr int kAskedTogether = 16;  // a far server is waited for, not computed with
constexpr const char* kCheckReports = "scaletrain data check lists all damaged samples";

[[noreturn]] void refuse_group(const ShardFile& shard, const format::TarGroup& group,
                               const std::string& found) {
  throw core::DataError(fmt::format("{}: {}", shard.place(), format::shown_name(group.key)), found,
                        kCheckReports);
}

std::vector<std::int64_t> labels_of(const ShardFile& shard, const format::TarGroup& group) {
  if (const auto problems = format::problems_of(group); !problems.empty()) {
    refuse_group(shard, group, fmt::to_string(fmt::join(problems, ", ")));
  }
  const std::string text = shard.read(group.find("cls")->member);
  auto labels = format::parse_labels(text);
  if (!labels) {
    if (const auto placeholder = core::find_placeholder(text)) {
      refuse_group(shard, group, "its label " + placeholder->found);
    }
    refuse_group(shard, group, "its label is not a class number");
  }
  if (const auto twice = format::repeated_label(*labels)) {
    refuse_group(shard, group, fmt::format("its label names class {} twice", *twice));
  }
  return *std::move(labels);
}

std::uint32_t label_for(const std::vector<std::int64_t>& labels) {
  constexpr std::uint32_t kList = std::uint32_t{1} << 31;
  if (labels.size() == 1) return static_cast<std::uint32_t>(labels.front());
  return static_cast<std::uint32_t>(core::xxh3_64(std::as_bytes(std::span(labels)))) | kList;
}

}  // namespace

ShardSet::ShardSet(const storage::Stores& stores, std::vector<std::string> paths)
    : stores_(stores),
      paths_(std::move(paths)),
      quarantine_(paths_, stores),
      identities_(paths_.size()) {
  const bool is_remote = !paths_.empty() && core::is_url(paths_.front());
  core::for_each_index(std::ssize(paths_), is_remote ? kAskedTogether : 1, [&](std::int64_t i) {
    const auto shard = static_cast<std::size_t>(i);
    if (!leaves_out(shard)) identities_[shard] = identity_of(stores_, paths_[shard]);
  });
}

std::unique_ptr<ShardFile> ShardSet::open(std::size_t shard) const {
  auto file = std::make_unique<ShardFile>(stores_, paths_[shard]);
  if (file->identity() == identities_[shard]) return file;
  throw core::DataError(file->place(), "was replaced while it was read",
                        "start again, and do not change shards while they are read");
}

std::uint32_t for_each_batch_of(const ShardSet& set, std::size_t shard, std::uint32_t first,
                                const UseBatch& use) {
  if (set.leaves_out(shard)) return first;
  const std::unique_ptr<ShardFile> file = set.open(shard);
  const std::vector<std::string> left_out = set.left_out_keys(shard);
  std::uint32_t next = first;
  format::KeySet keys;
  file->for_each_batch([&](std::vector<format::TarGroup> groups) {
    std::vector<FoundSample> batch;
    batch.reserve(groups.size());
    for (format::TarGroup& group : groups) {
      if (std::binary_search(left_out.begin(), left_out.end(), group.key)) continue;
      if (next == std::numeric_limits<std::uint32_t>::max()) {
        throw core::DataError(file->place(), "has more than 4294967295 samples",
                              "use fewer shards at a time");
      }
      if (!keys.insert(group.key)) refuse_group(*file, group, format::kKeyAgain);
      std::vector<std::int64_t> labels = labels_of(*file, group);
      batch.push_back({next++, static_cast<std::uint32_t>(shard), label_for(labels),
                       std::move(group), std::move(labels)});
    }
    if (!batch.empty()) use(*file, batch);
  });
  return next;
}

void for_each_batch(const ShardSet& set, const UseBatch& use, const std::function<void()>& after) {
  std::uint32_t next = 0;
  for (std::size_t shard = 0; shard < set.size(); ++shard) {
    next = for_each_batch_of(set, shard, next, use);
    after();
  }
}

std::int64_t bytes_of(const std::vector<FoundSample>& batch) {
  const format::TarMember& last = batch.back().group.fields.back().member;
  return last.data + last.bytes - batch.front().group.fields.front().member.begin;
}

}  // namespace scaletrain::app
