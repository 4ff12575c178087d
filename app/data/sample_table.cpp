#include "app/data/sample_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "lib/core/error.h"
#include "lib/core/hash.h"
#include "lib/core/url.h"
#include "lib/format/tar.h"
#include "lib/format/tar_samples.h"

namespace scaletrain::app {

SamplePlace place_of(const ShardFile& shard, const FoundSample& sample) {
  const std::int64_t block = sample.group.image()->member.begin / format::kTarBlock;
  if (block > std::numeric_limits<std::uint32_t>::max()) {
    throw core::DataError(shard.place(), "has more than 2 TiB", "divide it into several shards");
  }
  return {sample.shard, static_cast<std::uint32_t>(block), sample.label};
}

std::string key_at(const ShardSet& set, const SamplePlace& place) {
  // Not as a ShardFile, which would read megabytes of a remote shard.
  const auto shard = set.stores().open(set.path(place.shard));
  const std::string name = core::shown_path(set.path(place.shard));
  const format::ReadAt read = [&](std::int64_t offset, std::span<std::byte> out) {
    shard->read(offset, out);
  };
  const auto member =
      format::TarReader(name, shard->identity().bytes, read,
                        std::int64_t{place.block} * format::kTarBlock, format::kTarBlock)
          .next();
  const auto parts = member ? format::split_sample_name(member->path) : std::nullopt;
  return parts ? parts->key : "";
}

std::string shown_sample(const ShardSet& set, const SamplePlace& place) {
  return fmt::format("{}: {}", core::shown_path(set.path(place.shard)),
                     format::shown_name(key_at(set, place)));
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
