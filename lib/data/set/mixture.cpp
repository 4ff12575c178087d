#include "lib/data/set/mixture.h"

#include <algorithm>
#include <utility>

namespace scaletrain::data {

Mixture::Mixture(std::vector<Member> members, std::shared_ptr<const storage::Stores> stores)
    : members_(std::move(members)), stores_(std::move(stores)), first_shards_{0} {
  for (const Member& member : members_) {
    const Dataset& dataset = *member.dataset;
    first_shards_.push_back(first_shards_.back() + dataset.shard_count());
    if (classes_.empty()) classes_ = dataset.classes();
  }
}

std::int64_t Mixture::size() const {
  std::int64_t size = 0;
  for (const Member& member : members_) size += member.dataset->size();
  return size;
}

std::int64_t Mixture::shard_size(std::int64_t shard) const {
  const auto [dataset, there] = find(shard);
  return dataset->shard_size(there);
}

std::int64_t Mixture::shard_digest(std::int64_t shard) const {
  const auto [dataset, there] = find(shard);
  return dataset->shard_digest(there);
}

std::vector<std::int64_t> Mixture::known_sizes() const {
  std::vector<std::int64_t> sizes;
  for (const Member& member : members_) {
    const std::vector<std::int64_t> more = member.dataset->known_sizes();
    sizes.insert(sizes.end(), more.begin(), more.end());
  }
  return sizes;
}

std::vector<std::int64_t> Mixture::open_digests() const {
  std::vector<std::int64_t> digests;
  for (const Member& member : members_) {
    const std::vector<std::int64_t> more = member.dataset->open_digests();
    digests.insert(digests.end(), more.begin(), more.end());
  }
  return digests;
}

std::string Mixture::shard_path(std::int64_t shard) const {
  const auto [dataset, there] = find(shard);
  return dataset->shard_path(there);
}

// Announces the shards of all members together, since an announcement replaces the previous one.
void Mixture::announce(const std::vector<std::int64_t>& shards) const {
  if (!stores_) return;
  std::vector<std::string> paths;
  paths.reserve(shards.size());
  for (const std::int64_t shard : shards) paths.push_back(shard_path(shard));
  stores_->prefetch(paths);
}

std::vector<DatasetPart> Mixture::parts() const {
  std::vector<DatasetPart> parts;
  for (const Member& member : members_) {
    parts.push_back({member.dataset->shard_count(), member.weight, member.balanced});
  }
  return parts;
}

std::int64_t Mixture::label(std::int64_t shard, std::int64_t sample) const {
  const auto [dataset, there] = find(shard);
  return dataset->label(there, sample);
}

void Mixture::read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const {
  const auto [dataset, there] = find(shard);
  dataset->read_into(there, sample, raw);
}

std::string Mixture::image_place(std::int64_t shard, const RawSample& sample) const {
  const auto [dataset, there] = find(shard);
  return dataset->image_place(there, sample);
}

std::string Mixture::label_place(std::int64_t shard, const RawSample& sample) const {
  const auto [dataset, there] = find(shard);
  return dataset->label_place(there, sample);
}

std::pair<const Dataset*, std::int64_t> Mixture::find(std::int64_t shard) const {
  const auto next = std::upper_bound(first_shards_.begin(), first_shards_.end(), shard);
  const auto i = static_cast<std::size_t>(next - first_shards_.begin()) - 1;
  return {members_[i].dataset.get(), shard - first_shards_[i]};
}

}  // namespace scaletrain::data
