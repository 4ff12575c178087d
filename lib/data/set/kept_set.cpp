#include "lib/data/set/kept_set.h"

#include <utility>

#include "lib/core/log.h"

namespace scaletrain::data {
namespace {

// Memory of a sample besides its bytes: the struct, its node in the map, and the allocator's
// overhead.
constexpr std::int64_t kOverheadBytes = sizeof(RawSample) + 160;

std::int64_t bytes_of(const RawSample& sample) {
  return kOverheadBytes +
         static_cast<std::int64_t>(sample.image.size() + sample.key.size() + sample.shard.size() +
                                   sample.labels.size() * sizeof(std::int64_t));
}

}  // namespace

KeptSet::KeptSet(std::shared_ptr<const Dataset> whole, std::int64_t max_bytes)
    : whole_(std::move(whole)),
      max_bytes_(max_bytes),
      shards_(static_cast<std::size_t>(whole_->shard_count())) {}

void KeptSet::read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const {
  Shard& kept = shards_[static_cast<std::size_t>(shard)];
  std::shared_ptr<const RawSample> found;
  {
    const std::lock_guard lock(kept.mutex);
    const auto place = kept.samples.find(sample);
    if (place != kept.samples.end()) found = place->second;
  }
  if (found) {
    raw = *found;
    return;
  }
  whole_->read_into(shard, sample, raw);
  if (take_room(raw)) {
    auto copy = std::make_shared<const RawSample>(raw);
    const std::lock_guard lock(kept.mutex);
    if (!kept.samples.emplace(sample, std::move(copy)).second) {
      used_bytes_ -= bytes_of(raw);  // another thread has read the sample meanwhile
    }
  }
}

bool KeptSet::take_room(const RawSample& sample) const {
  const std::int64_t bytes = bytes_of(sample);
  if ((used_bytes_ += bytes) <= max_bytes_) return true;
  used_bytes_ -= bytes;
  if (!is_full_.exchange(true)) {
    core::warn(
        "the cache in memory is full (max_bytes {}): samples that do not fit are read again each "
        "time",
        max_bytes_);
  }
  return false;
}

void KeptSet::announce(const std::vector<std::int64_t>& shards) const {
  std::vector<std::int64_t> wanted;
  for (const std::int64_t shard : shards) {
    Shard& kept = shards_[static_cast<std::size_t>(shard)];
    const std::lock_guard lock(kept.mutex);
    // A shard that was never read is not opened just for its size.
    const bool is_whole =
        !kept.samples.empty() && std::ssize(kept.samples) == whole_->shard_size(shard);
    if (!is_whole) wanted.push_back(shard);
  }
  whole_->announce(wanted);
}

}  // namespace scaletrain::data
