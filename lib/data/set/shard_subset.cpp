#include "lib/data/set/shard_subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace scaletrain::data {
namespace {

constexpr std::uint64_t kShardSubsetKey = 0x737562736574;  // ASCII "subset": the same for every run

// Returns how many samples each shard contributes to `total`: all of a small shard, equally many of
// the others.
std::vector<std::int64_t> shared_out(const std::vector<std::int64_t>& sizes, std::int64_t total) {
  std::vector<std::size_t> by_size(sizes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
  std::vector<std::int64_t> result(sizes.size());
  auto left = std::ssize(sizes);
  for (const std::size_t i : by_size) {
    result[i] = std::min(sizes[i], total / left--);
    total -= result[i];
  }
  return result;
}

}  // namespace

ShardSubset::ShardSubset(std::shared_ptr<const Dataset> whole, std::int64_t size)
    : whole_(std::move(whole)) {
  const Permutation order(kShardSubsetKey, whole_->shard_count());
  std::vector<std::int64_t> sizes;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < whole_->shard_count() && total < size; ++i) {
    const std::int64_t shard = order(i);
    sizes.push_back(whole_->shard_size(shard));
    total += sizes.back();
    parts_.push_back({shard, 0, Permutation(kShardSubsetKey, sizes.back())});
  }
  const std::vector<std::int64_t> shares = shared_out(sizes, std::min(size, total));
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].samples = shares[i];
}

std::int64_t ShardSubset::size() const {
  std::int64_t size = 0;
  for (const Part& part : parts_) size += part.samples;
  return size;
}

std::int64_t ShardSubset::shard_digest(std::int64_t shard) const {
  return digest_number(
      fmt::format("{} of {}", part(shard).samples, whole_->shard_digest(part(shard).shard)));
}

void ShardSubset::announce(const std::vector<std::int64_t>& shards) const {
  std::vector<std::int64_t> there;
  there.reserve(shards.size());
  for (const std::int64_t shard : shards) there.push_back(part(shard).shard);
  whole_->announce(there);
}

std::int64_t ShardSubset::label(std::int64_t shard, std::int64_t sample) const {
  return whole_->label(part(shard).shard, part(shard).choice(sample));
}

void ShardSubset::read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const {
  whole_->read_into(part(shard).shard, part(shard).choice(sample), raw);
}

std::string ShardSubset::image_place(std::int64_t shard, const RawSample& sample) const {
  return whole_->image_place(part(shard).shard, sample);
}

std::string ShardSubset::label_place(std::int64_t shard, const RawSample& sample) const {
  return whole_->label_place(part(shard).shard, sample);
}

}  // namespace scaletrain::data
