// Tensors of their own that replicas give to rank 0's: written where the replicas meet, read by
// rank 0's training and given to the other ranks of its replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace scaletrain::parallel {

class GivenTensors {
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
  // This rank has given all of its tensors.
  void finish(int rank) {
    const std::lock_guard lock(mutex_);
    whole_.insert(rank);
  }
  bool is_whole(int rank) {
    const std::lock_guard lock(mutex_);
    return whole_.contains(rank);
  }
  // By number, once; {} of a rank that has not given all of them.
  std::map<std::int32_t, Bytes> take(int rank) {
    const std::lock_guard lock(mutex_);
    if (whole_.erase(rank) == 0) return {};
    return std::exchange(given_[rank], {});
  }

 private:
  std::mutex mutex_;
  std::map<int, std::map<std::int32_t, Bytes>> given_;  // by rank of the hub
  std::set<int> whole_;
};

}  // namespace scaletrain::parallel
