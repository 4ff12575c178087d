// A large shard is divided at positions where members seem to begin, and each thread reads one
// part. Data may look like a header, so such a position is a guess; the part before confirms it by
// ending there. If anything does not fit, one thread reads the shard from front to end and reports
// the error, if there is one.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/parallel.h"
#include "lib/format/all_different.h"
#include "lib/format/tar/shard_index.h"
#include "lib/format/tar/tar_header.h"
#include "lib/format/tar/tar_samples.h"

namespace scaletrain::format {
namespace {

constexpr std::int64_t kMaxShardBytes = kTarBlock << 32;  // entries count blocks in 32 bits
constexpr std::int64_t kMinPartBytes = 8 << 20;
constexpr std::int64_t kSearchBytes = 1 << 16;  // read at a time

// Size of the smallest sample; memory reserved for more samples than exist is never touched.
constexpr std::int64_t kMinSampleBytes = 4 * kTarBlock, kMostReserved = 1 << 20;

struct Shard {
  const std::string& name;
  std::int64_t bytes;
  const ReadAt& read;
};

IndexEntry entry_of(const TarSample& sample) {
  constexpr std::uint32_t kList = std::uint32_t{1} << 31;
  const std::int64_t blocks = (sample.labels_begin - sample.image.begin) / kTarBlock;
  const auto label = static_cast<std::uint32_t>(sample.label < 0 ? blocks : sample.label);
  return {static_cast<std::uint32_t>(sample.image.begin / kTarBlock),
          static_cast<std::uint32_t>(sample.image.data - sample.image.begin),
          static_cast<std::uint32_t>(sample.image.bytes), sample.label < 0 ? label | kList : label};
}

bool looks_like_header(std::span<const std::byte> block) {
  constexpr std::size_t kMagic = 257;
  const std::string_view text(reinterpret_cast<const char*>(block.data()), block.size());
  if (!text.substr(kMagic).starts_with("ustar")) return false;
  try {
    parse_tar_header(block);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// Returns the start of the member after the header at `offset`. An extended header may precede the
// one at `offset`, but never comes between it and the next member.
std::optional<std::int64_t> next_member(const Shard& shard, std::int64_t offset) {
  try {
    TarReader reader(shard.name, shard.bytes, shard.read, offset);
    TarMember member;
    if (reader.next(member) && reader.next(member)) return member.begin;
  } catch (const core::DataError&) {  // not a header
  }
  return std::nullopt;
}

// Returns a position from `begin` to before `end` at which a member seems to begin.
std::optional<std::int64_t> find_member(const Shard& shard, std::int64_t begin, std::int64_t end) {
  std::vector<std::byte> bytes(kSearchBytes);
  for (begin = begin / kTarBlock * kTarBlock; begin + kSearchBytes <= end; begin += kSearchBytes) {
    shard.read(begin, bytes);
    for (std::int64_t at = 0; at < kSearchBytes; at += kTarBlock) {
      if (!looks_like_header(std::span(bytes).subspan(static_cast<std::size_t>(at), kTarBlock))) {
        continue;
      }
      const auto found = next_member(shard, begin + at);
      if (found && *found < end) return found;
    }
  }
  return std::nullopt;
}

std::vector<TarStretch> cut(const Shard& shard, std::int64_t parts) {
  std::vector<TarStretch> stretches{{0, shard.bytes}};
  for (std::int64_t i = 1; i < parts; ++i) {
    const auto place = find_member(shard, shard.bytes / parts * i, shard.bytes / parts * (i + 1));
    if (!place) continue;
    stretches.back().end = *place;
    stretches.push_back({*place, shard.bytes});
  }
  return stretches;
}

std::vector<IndexEntry> room_for(std::int64_t shard_bytes) {
  std::vector<IndexEntry> entries;
  entries.reserve(static_cast<std::size_t>(std::min(shard_bytes / kMinSampleBytes, kMostReserved)));
  return entries;
}

// nullopt if the parts do not fit together, or the shard has an error.
std::optional<std::vector<IndexEntry>> index_parts(const Shard& shard,
                                                   const std::vector<TarStretch>& stretches,
                                                   std::span<const std::string> excluded) {
  std::vector<std::vector<IndexEntry>> entries(stretches.size());
  std::vector<std::vector<std::uint64_t>> keys(stretches.size());
  std::atomic<bool> joins = true;
  try {
    core::for_each_index(
        std::ssize(stretches), static_cast<int>(stretches.size()), [&](std::int64_t number) {
          const auto i = static_cast<std::size_t>(number);
          // Separate allocations, not next to those of another thread; the first one later receives
          // the others' entries.
          auto its_entries = room_for(i == 0 ? shard.bytes : stretches[i].end - stretches[i].begin);
          auto its_keys = for_each_sample_between(
              stretches[i], shard.name, shard.bytes, shard.read,
              [&](const TarSample& sample) { its_entries.push_back(entry_of(sample)); }, excluded);
          if (!its_keys) joins = false;
          if (its_keys) keys[i] = *std::move(its_keys);
          entries[i] = std::move(its_entries);
        });
  } catch (const core::DataError&) {
    return std::nullopt;
  }
  if (!joins || !all_different(keys, static_cast<int>(keys.size()))) return std::nullopt;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    entries[0].insert(entries[0].end(), entries[i].begin(), entries[i].end());
  }
  return std::move(entries[0]);
}

}  // namespace

std::vector<IndexEntry> index_shard(const std::string& name, std::int64_t file_bytes,
                                    const ReadAt& read, std::span<const std::string> excluded,
                                    int threads, const LabelRule& rule, std::int64_t* left_out) {
  if (file_bytes > kMaxShardBytes) {
    throw core::DataError(
        name, fmt::format("a shard of {} bytes", file_bytes),
        fmt::format("at most {} bytes are allowed: write more and smaller shards", kMaxShardBytes));
  }
  const Shard shard{name, file_bytes, read};
  const std::int64_t most = std::min<std::int64_t>(threads, file_bytes / kMinPartBytes);
  if (most > 1 && rule.digest() == 0) {
    const std::vector<TarStretch> stretches = cut(shard, most);
    if (stretches.size() > 1) {
      if (auto entries = index_parts(shard, stretches, excluded)) return *std::move(entries);
    }
  }
  std::vector<IndexEntry> entries;
  const std::int64_t incomplete = for_each_sample(
      name, file_bytes, read, [&](const TarSample& sample) { entries.push_back(entry_of(sample)); },
      excluded, rule);
  if (left_out != nullptr) *left_out = incomplete;
  return entries;
}

}  // namespace scaletrain::format
