// Rank-local tensors that replicas send to rank 0's replica, for checkpoints: the hub's thread
// writes them, rank 0's training reads them and the hub sends them on to its replica's other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace scaletrain::local_sgd {

class ReceivedTensors {
 public:
  using Bytes = std::vector<std::byte>;

  void clear() {
    const std::lock_guard lock(mutex_);
    given_.clear();
    whole_.clear();
  }
  void put(int rank, std::int32_t number, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    given_[rank][number] = std::move(bytes);
  }
  // Marks that `rank` has sent all of its tensors.
  void finish(int rank) {
    const std::lock_guard lock(mutex_);
    whole_.insert(rank);
  }
  bool is_whole(int rank) {
    const std::lock_guard lock(mutex_);
    return whole_.contains(rank);
  }
  // Removes and returns the tensors of `rank` by number; {} if it has not sent all of them.
  std::map<std::int32_t, Bytes> take(int rank) {
    const std::lock_guard lock(mutex_);
    if (whole_.erase(rank) == 0) return {};
    return std::exchange(given_[rank], {});
  }

 private:
  std::mutex mutex_;
  std::map<int, std::map<std::int32_t, Bytes>> given_;  // keyed by the hub's rank
  std::set<int> whole_;
};

}  // namespace scaletrain::local_sgd
