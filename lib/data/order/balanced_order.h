// Class-balanced sampling: every class is drawn equally often, whatever its number of samples.
//
// An epoch has as many positions as the set has samples, and each class gets an equal part of them,
// to within one. Each class cycles through its samples in its own order: no sample repeats before
// all samples of its class have been used. Takes 4 bytes a sample.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/data/order/order.h"
#include "lib/data/order/shard_offsets.h"

namespace scaletrain::data {

class BalancedOrder : public Order {
 public:
  using LabelOf = std::function<std::int64_t(std::int64_t shard, std::int64_t sample)>;

  // Throws core::DataError above 2^32 samples.
  BalancedOrder(std::uint64_t seed, const std::vector<std::int64_t>& shard_sizes,
                const LabelOf& label_of);

  std::int64_t size() const override { return offsets_.size(); }
  SamplePlace at(std::int64_t epoch, std::int64_t position) const override;

 private:
  std::uint64_t seed_;
  ShardOffsets offsets_;
  std::vector<std::uint32_t> members_;  // sample numbers, class by class
  std::vector<std::int64_t> begins_;    // first index of each class that has samples; then the end
};

}  // namespace scaletrain::data
