#include "lib/data/loader/upcoming_shards.h"

#include <algorithm>
#include <utility>

namespace scaletrain::data {

void UpcomingShards::plan(std::int64_t number, const BatchJob& job) {
  const bool sought = std::exchange(last_, number) != number - 1;
  bool changed = false;
  for (std::int64_t lane = slice_.reader; lane < order_->lanes(); lane += slice_.readers) {
    if (!sought && lane != order_->lane(job.epoch, job.position)) continue;
    std::vector<std::int64_t> shards = order_->upcoming(lane, job.epoch, job.position);
    if (shards.empty() || shards == next_[lane]) continue;
    next_[lane] = std::move(shards);
    changed = true;
  }
  if (!changed) return;
  // Takes the first needed shard of every lane, then the second of every lane, and so on.
  std::vector<std::int64_t> all;
  for (std::size_t i = 0, before = 1; all.size() != before; ++i) {
    before = all.size();
    for (const auto& [lane, shards] : next_) {
      if (i < shards.size()) all.push_back(shards[i]);
    }
  }
  dataset_->announce(all);
}

}  // namespace scaletrain::data
