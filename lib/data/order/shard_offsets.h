// Maps a sample's number in a list of shards to its shard and its number in that shard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace scaletrain::data {

struct SamplePlace {
  std::int64_t shard = 0;
  std::int64_t sample = 0;

  bool operator==(const SamplePlace&) const = default;
};

class ShardOffsets {
 public:
  explicit ShardOffsets(const std::vector<std::int64_t>& sizes) {
    ends_.reserve(sizes.size());
    std::int64_t end = 0;
    for (const std::int64_t size : sizes) ends_.push_back(end += size);
  }

  std::int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }

  // Returns the number of samples before shard `shard`, 0 .. number of shards.
  std::int64_t before(std::int64_t shard) const {
    return shard == 0 ? 0 : ends_[static_cast<std::size_t>(shard) - 1];
  }

  // Returns the place of sample `number`, 0 .. size()-1, by binary search.
  SamplePlace locate(std::int64_t number) const {
    const auto shard = std::upper_bound(ends_.begin(), ends_.end(), number) - ends_.begin();
    return {shard, number - before(shard)};
  }

 private:
  std::vector<std::int64_t> ends_;
};

}  // namespace scaletrain::data
