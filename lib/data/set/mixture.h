// Concatenates several sets: the shards of each follow those of the set before.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/data/set/dataset.h"
#include "lib/storage/stores.h"

namespace scaletrain::data {

class Mixture : public Dataset {
 public:
  struct Member {
    std::shared_ptr<const Dataset> dataset;
    double weight = 1;
    bool balanced = false;
  };

  // Members that name their classes have the same list. `stores`: storage from which shards are
  // prefetched; null: no prefetch.
  explicit Mixture(std::vector<Member> members,
                   std::shared_ptr<const storage::Stores> stores = nullptr);

  std::int64_t size() const override;
  std::int64_t shard_count() const override { return first_shards_.back(); }
  std::int64_t shard_size(std::int64_t shard) const override;
  std::int64_t shard_digest(std::int64_t shard) const override;
  std::vector<std::int64_t> known_sizes() const override;
  std::vector<std::int64_t> open_digests() const override;
  std::string shard_path(std::int64_t shard) const override;
  void announce(const std::vector<std::int64_t>& shards) const override;
  std::vector<DatasetPart> parts() const override;
  std::int64_t label(std::int64_t shard, std::int64_t sample) const override;
  void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const override;
  std::string image_place(std::int64_t shard, const RawSample& sample) const override;
  std::string label_place(std::int64_t shard, const RawSample& sample) const override;
  const std::vector<std::string>& classes() const override { return classes_; }

 private:
  // Returns the member that has `shard`, and the shard's number in it.
  std::pair<const Dataset*, std::int64_t> find(std::int64_t shard) const;

  std::vector<Member> members_;
  std::shared_ptr<const storage::Stores> stores_;
  std::vector<std::int64_t> first_shards_;  // first shard of each member; then the total
  std::vector<std::string> classes_;
};

}  // namespace scaletrain::data
