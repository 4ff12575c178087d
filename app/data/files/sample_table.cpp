#include "app/data/files/sample_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/url.h"
#include "lib/format/tar/tar.h"
#include "lib/format/tar/tar_samples.h"

namespace scaletrain::app {

SamplePlace place_of(const ShardFile& shard, const FoundSample& sample) {
  const std::int64_t block = sample.group.image()->member.begin / format::kTarBlock;
  if (block > std::numeric_limits<std::uint32_t>::max()) {
    throw core::DataError(shard.place(), "has more than 2 TiB", "divide it into several shards");
  }
  return {sample.shard, static_cast<std::uint32_t>(block), sample.label};
}

std::vector<std::string> keys_at(const ShardSet& set, const std::vector<SamplePlace>& places) {
  std::vector<std::size_t> order(places.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(places[a].shard, places[a].block) <
           std::pair(places[b].shard, places[b].block);
  });
  std::vector<std::string> keys(places.size());
  std::unique_ptr<storage::Object> shard;  // no ShardFile: it reads megabytes of a remote one
  std::string name;
  const format::ReadAt read = [&](std::int64_t offset, std::span<std::byte> out) {
    shard->read(offset, out);
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    const SamplePlace& place = places[order[i]];
    if (i == 0 || place.shard != places[order[i - 1]].shard) {
      shard.reset();  // the space of a decompressed one is free again before the next
      shard = set.stores().open(set.path(place.shard));
      name = core::shown_path(set.path(place.shard));
    }
    const auto member =
        format::TarReader(name, shard->identity().bytes, read,
                          std::int64_t{place.block} * format::kTarBlock, format::kTarBlock)
            .next();
    auto parts = member ? format::split_sample_name(member->path) : std::nullopt;
    if (parts) keys[order[i]] = std::move(parts->key);
  }
  return keys;
}

std::vector<std::string> shown_samples(const ShardSet& set,
                                       const std::vector<SamplePlace>& places) {
  std::vector<std::string> shown = keys_at(set, places);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    shown[i] = fmt::format("{}: {}", core::shown_path(set.path(places[i].shard)),
                           format::shown_name(shown[i]));
  }
  return shown;
}

ContentHash content_hash(std::string_view bytes) {
  constexpr std::uint64_t kOtherSeed = 0x9e3779b97f4a7c15;
  return {core::xxh3_64(bytes), core::xxh3_64(bytes, kOtherSeed)};
}

HashedSamples hash_samples(const ShardSet& set, int threads,
                           const std::function<void(const FoundSample&, ContentHash)>& also) {
  struct Hashed {
    SamplePlace place;
    ContentHash hash;
  };
  HashedSamples samples;
  for_each_sample<Hashed>(
      set, "hashing shards", threads,
      [](const ShardFile& shard, const FoundSample& sample, int) {
        return Hashed{place_of(shard, sample),
                      content_hash(shard.read(sample.group.image()->member))};
      },
      [&](const FoundSample& sample, Hashed hashed) {
        samples.places.push_back(hashed.place);
        samples.hashes.push_back(hashed.hash);
        if (also) also(sample, hashed.hash);
      });
  return samples;
}

SampleSets equal_sets(const std::vector<ContentHash>& hashes) {
  std::vector<std::uint32_t> order(hashes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return hashes[a] == hashes[b] ? a < b : hashes[a] < hashes[b];
  });
  SampleSets sets;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && hashes[order[end]] == hashes[order[begin]]) ++end;
    if (end - begin < 2) continue;
    sets.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                      order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

}  // namespace scaletrain::app
