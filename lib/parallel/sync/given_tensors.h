// Tensors of their own that replicas give to rank 0: written where the replicas meet, read by rank
// 0's training.
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
  void put(int replica, std::int32_t number, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    given_[replica][number] = std::move(bytes);
  }
  // This replica has given all of its tensors.
  void finish(int replica) {
    const std::lock_guard lock(mutex_);
    whole_.insert(replica);
  }
  // By number, once; {} of a replica that has not given all of them.
  std::map<std::int32_t, Bytes> take(int replica) {
    const std::lock_guard lock(mutex_);
    if (whole_.erase(replica) == 0) return {};
    return std::exchange(given_[replica], {});
  }

 private:
  std::mutex mutex_;
  std::map<int, std::map<std::int32_t, Bytes>> given_;
  std::set<int> whole_;
};

}  // namespace scaletrain::parallel
