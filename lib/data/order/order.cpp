#include "lib/data/order/order.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lib/data/order/permutation.h"

namespace scaletrain::data {
namespace {}  // namespace

SamplePlace Order::replacement(std::int64_t epoch, std::int64_t /*position*/,
                               core::Philox& draws) const {
  return at(epoch, static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(size()))));
}

class IndexedOrder::Impl {
  // The shards of one epoch in their permuted order.
  struct EpochShards {
    std::int64_t epoch;
    std::vector<std::int64_t> shards;
    ShardOffsets offsets;
  };

 public:
  Impl(std::uint64_t seed, std::vector<std::int64_t> sizes, std::int64_t shuffle_shards)
      : seed_(seed), sizes_(std::move(sizes)), offsets_(sizes_), group_shards_(shuffle_shards) {
    if (group_shards_ >= static_cast<std::int64_t>(sizes_.size())) group_shards_ = 0;
  }

  std::int64_t size() const { return offsets_.size(); }

  SamplePlace at(std::int64_t epoch, std::int64_t position) const {
    if (group_shards_ == 0) return offsets_.locate(permuted(epoch, 0, size(), position));
    const std::shared_ptr<const EpochShards> list = shards_of(epoch);
    const std::int64_t group = list->offsets.locate(position).shard / group_shards_;
    const std::int64_t last =
        std::min((group + 1) * group_shards_, static_cast<std::int64_t>(sizes_.size()));
    const std::int64_t begin = list->offsets.before(group * group_shards_);
    const std::int64_t end = list->offsets.before(last);
    const SamplePlace place =
        list->offsets.locate(begin + permuted(epoch, group, end - begin, position - begin));
    return {list->shards[static_cast<std::size_t>(place.shard)], place.sample};
  }

 private:
  std::int64_t permuted(std::int64_t epoch, std::int64_t group, std::int64_t size,
                        std::int64_t index) const {
    return Permutation(permutation_key(seed_, core::DrawPurpose::kSampleOrder, epoch, group),
                       size)(index);
  }

  // Prefetch reaches into the next epoch, so two epochs are kept.
  std::shared_ptr<const EpochShards> shards_of(std::int64_t epoch) const {
    const std::lock_guard lock(mutex_);
    for (const auto& known : recent_) {
      if (known && known->epoch == epoch) return known;
    }
    const auto count = static_cast<std::int64_t>(sizes_.size());
    const Permutation order(permutation_key(seed_, core::DrawPurpose::kShardOrder, epoch, 0),
                            count);
    std::vector<std::int64_t> shards, sizes;
    for (std::int64_t i = 0; i < count; ++i) {
      shards.push_back(order(i));
      sizes.push_back(sizes_[static_cast<std::size_t>(shards.back())]);
    }
    recent_[1] = std::move(recent_[0]);
    recent_[0] =
        std::make_shared<EpochShards>(EpochShards{epoch, std::move(shards), ShardOffsets(sizes)});
    return recent_[0];
  }

  std::uint64_t seed_;
  std::vector<std::int64_t> sizes_;
  ShardOffsets offsets_;
  std::int64_t group_shards_;  // 0: one group of everything
  mutable std::mutex mutex_;
  mutable std::array<std::shared_ptr<const EpochShards>, 2> recent_;
};

IndexedOrder::IndexedOrder(std::uint64_t seed, std::vector<std::int64_t> shard_sizes,
                           std::int64_t shuffle_shards)
    : impl_(std::make_unique<Impl>(seed, std::move(shard_sizes), shuffle_shards)) {}

IndexedOrder::~IndexedOrder() = default;

SamplePlace IndexedOrder::at(std::int64_t epoch, std::int64_t position) const {
  return impl_->at(epoch, position);
}

std::int64_t IndexedOrder::size() const { return impl_->size(); }

}  // namespace scaletrain::data
