// Who of the replicas is still there, and how far each has come: written where the replicas meet,
// read by rank 0's training.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace scaletrain::parallel {

struct ReplicaPlace {
  std::int64_t steps = 0;  // of training, whose outcome is in the common weights
  bool is_done = false;    // has left in good order
  bool is_lost = false;    // has gone without a word
};

class ReplicaRoll {
 public:
  ReplicaRoll(int replicas, std::int64_t steps)
      : places_(static_cast<std::size_t>(replicas), ReplicaPlace{.steps = steps}) {}

  void came(int replica, std::int64_t steps) {
    const std::lock_guard lock(mutex_);
    at(replica).steps = steps;
  }
  void left(int replica) {
    const std::lock_guard lock(mutex_);
    at(replica).is_done = true;
  }
  // Whether that is news: one that has left is not lost.
  bool lost(int replica) {
    const std::lock_guard lock(mutex_);
    if (at(replica).is_done) return false;
    return at(replica).is_lost = true;
  }

  // By replica.
  std::vector<ReplicaPlace> places() const {
    const std::lock_guard lock(mutex_);
    return places_;
  }

 private:
  ReplicaPlace& at(int replica) { return places_[static_cast<std::size_t>(replica)]; }

  mutable std::mutex mutex_;
  std::vector<ReplicaPlace> places_;
};

}  // namespace scaletrain::parallel
