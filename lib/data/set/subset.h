// A fixed subset of a set: the same samples in every epoch and run, whatever the seed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/data/order/permutation.h"
#include "lib/data/order/shard_offsets.h"
#include "lib/data/set/dataset.h"

namespace scaletrain::data {

// One shard of `size` samples, chosen evenly at random from all of `whole`.
class Subset : public Dataset {
 public:
  // `size` is at most that of `whole`.
  Subset(std::shared_ptr<const Dataset> whole, std::int64_t size);

  std::int64_t size() const override { return size_; }
  std::int64_t shard_count() const override { return 1; }
  std::int64_t shard_size(std::int64_t /*shard*/) const override { return size_; }
  std::int64_t shard_digest(std::int64_t shard) const override;
  std::int64_t label(std::int64_t shard, std::int64_t sample) const override;
  void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const override;
  std::string image_place(std::int64_t shard, const RawSample& sample) const override;
  std::string label_place(std::int64_t shard, const RawSample& sample) const override;
  const std::vector<std::string>& classes() const override { return whole_->classes(); }

 private:
  SamplePlace place(std::int64_t sample) const;

  std::shared_ptr<const Dataset> whole_;
  std::int64_t size_;
  ShardOffsets offsets_;
  Permutation choice_;
};

}  // namespace scaletrain::data
