// A fixed subset of a set that is read shard by shard: the same samples in every epoch and run,
// whatever the seed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/data/order/permutation.h"
#include "lib/data/set/dataset.h"

namespace scaletrain::data {

// Chooses, in a random order, as few shards as have `size` samples; each gives the same number of
// samples if it has enough. They remain shards, so that lanes share them. No other shard is opened.
class ShardSubset : public Dataset {
 public:
  // Opens the chosen shards unless their sizes are known. A set with fewer samples is used
  // completely.
  ShardSubset(std::shared_ptr<const Dataset> whole, std::int64_t size);

  std::int64_t size() const override;
  std::int64_t shard_count() const override { return std::ssize(parts_); }
  std::int64_t shard_size(std::int64_t shard) const override { return part(shard).samples; }
  std::int64_t shard_digest(std::int64_t shard) const override;
  std::vector<std::int64_t> known_sizes() const override { return whole_->known_sizes(); }
  std::vector<std::int64_t> open_digests() const override { return whole_->open_digests(); }
  std::string shard_path(std::int64_t shard) const override {
    return whole_->shard_path(part(shard).shard);
  }
  void announce(const std::vector<std::int64_t>& shards) const override;
  std::int64_t label(std::int64_t shard, std::int64_t sample) const override;
  void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const override;
  std::string image_place(std::int64_t shard, const RawSample& sample) const override;
  std::string label_place(std::int64_t shard, const RawSample& sample) const override;
  const std::vector<std::string>& classes() const override { return whole_->classes(); }

 private:
  struct Part {
    std::int64_t shard = 0;    // index in the whole set
    std::int64_t samples = 0;  // the first ones in the order of `choice`
    Permutation choice;
  };
  const Part& part(std::int64_t shard) const { return parts_[static_cast<std::size_t>(shard)]; }

  std::shared_ptr<const Dataset> whole_;
  std::vector<Part> parts_;
};

}  // namespace scaletrain::data
