#include "lib/data/order/balanced_order.h"

#include <limits>
#include <map>

#include "lib/core/error.h"
#include "lib/data/order/permutation.h"

namespace scaletrain::data {

BalancedOrder::BalancedOrder(std::uint64_t seed, const std::vector<std::int64_t>& shard_sizes,
                             const LabelOf& label_of)
    : seed_(seed), offsets_(shard_sizes) {
  if (offsets_.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw core::DataError("/data/train/balanced", "more than 2^32 samples",
                          "balance smaller sources, mixed by weight");
  }
  const auto for_each = [&](const auto& use) {
    std::uint32_t number = 0;
    for (std::size_t shard = 0; shard < shard_sizes.size(); ++shard) {
      for (std::int64_t i = 0; i < shard_sizes[shard]; ++i) {
        use(label_of(static_cast<std::int64_t>(shard), i), number++);
      }
    }
  };
  std::map<std::int64_t, std::int64_t> next;  // class -> index in members_ of its next sample
  for_each([&](std::int64_t label, std::uint32_t) { ++next[label]; });
  std::int64_t begin = 0;
  for (auto& [label, count] : next) {
    begins_.push_back(begin);
    const std::int64_t end = begin + count;
    count = begin;
    begin = end;
  }
  begins_.push_back(begin);
  members_.resize(static_cast<std::size_t>(begin));
  for_each([&](std::int64_t label, std::uint32_t number) {
    members_[static_cast<std::size_t>(next[label]++)] = number;
  });
}

SamplePlace BalancedOrder::at(std::int64_t epoch, std::int64_t position) const {
  const Permutation turns(permutation_key(seed_, core::DrawPurpose::kClassOrder, epoch, 0), size());
  const std::int64_t turn = epoch * size() + turns(position);
  const auto classes = static_cast<std::int64_t>(begins_.size()) - 1;
  const std::int64_t number = turn / classes, which = turn % classes;
  const std::int64_t begin = begins_[static_cast<std::size_t>(which)];
  const std::int64_t count = begins_[static_cast<std::size_t>(which) + 1] - begin;
  const Permutation order(
      permutation_key(seed_, core::DrawPurpose::kSampleOrder, number / count, which), count);
  return offsets_.locate(members_[static_cast<std::size_t>(begin + order(number % count))]);
}

}  // namespace scaletrain::data
