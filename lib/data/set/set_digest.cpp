#include "lib/data/set/set_digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/core/text/hash.h"
#include "lib/data/order/shard_offsets.h"

namespace scaletrain::data {
namespace {

constexpr std::int64_t kSamples = 16;

}  // namespace

std::string index_digest(const SampleSet& set) {
  std::string digests;
  for (std::int64_t shard = 0; shard < set.shard_count(); ++shard) {
    digests += fmt::format("{} ", set.shard_digest(shard));
  }
  return fmt::format("{:016x}", core::xxh3_64(digests));
}

std::string set_digest(const Dataset& dataset) {
  const ShardOffsets offsets(shard_sizes(dataset));
  const std::int64_t size = dataset.size(), count = std::min(kSamples, size);
  std::uint64_t digest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const SamplePlace place = offsets.locate(i * size / count);
    const RawSample sample = dataset.read(place.shard, place.sample);
    std::string facts = fmt::format("{}\n{}\n{}", sample.shard, sample.key, sample.label);
    if (sample.label < 0) facts += fmt::format(" {}", fmt::join(sample.labels, " "));
    digest = core::xxh3_64(facts, digest);
    digest = core::xxh3_64(sample.image, digest);
  }
  return fmt::format("{:016x}", digest);
}

}  // namespace scaletrain::data
