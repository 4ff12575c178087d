// Caches encoded samples in memory once they have been read (/data/train/cache).
//
// Only the source of the bytes changes, not the samples or their order. When max_bytes are used up,
// a warning is logged once, and further samples are read each time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/data/set/dataset.h"

namespace scaletrain::data {

class KeptSet : public Dataset {
 public:
  KeptSet(std::shared_ptr<const Dataset> whole, std::int64_t max_bytes);

  std::int64_t size() const override { return whole_->size(); }
  std::int64_t shard_count() const override { return whole_->shard_count(); }
  std::int64_t shard_size(std::int64_t shard) const override { return whole_->shard_size(shard); }
  std::vector<std::int64_t> known_sizes() const override { return whole_->known_sizes(); }
  std::int64_t shard_digest(std::int64_t shard) const override {
    return whole_->shard_digest(shard);
  }
  std::vector<std::int64_t> open_digests() const override { return whole_->open_digests(); }
  std::vector<DatasetPart> parts() const override { return whole_->parts(); }
  std::string shard_path(std::int64_t shard) const override { return whole_->shard_path(shard); }
  // Does not prefetch shards that are completely in memory.
  void announce(const std::vector<std::int64_t>& shards) const override;
  std::int64_t label(std::int64_t shard, std::int64_t sample) const override {
    return whole_->label(shard, sample);
  }
  void read_into(std::int64_t shard, std::int64_t sample, RawSample& raw) const override;
  std::string image_place(std::int64_t shard, const RawSample& sample) const override {
    return whole_->image_place(shard, sample);
  }
  std::string label_place(std::int64_t shard, const RawSample& sample) const override {
    return whole_->label_place(shard, sample);
  }
  const std::vector<std::string>& classes() const override { return whole_->classes(); }

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::int64_t, std::shared_ptr<const RawSample>> samples;
  };

  bool take_room(const RawSample& sample) const;

  std::shared_ptr<const Dataset> whole_;
  std::int64_t max_bytes_;
  mutable std::vector<Shard> shards_;
  mutable std::atomic<std::int64_t> used_bytes_ = 0;
  mutable std::atomic<bool> is_full_ = false;
};

}  // namespace scaletrain::data
