// Membership: progress and presence of each replica. The hub's thread writes it, rank 0's training
// reads it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace scaletrain::local_sgd {

struct ReplicaProgress {
  std::int64_t steps = 0;  // steps of training that the global weights include
  bool is_done = false;    // has left in an orderly way
  bool is_lost = false;    // was lost without leaving
};

class Membership {
 public:
  Membership(int replicas, std::int64_t steps)
      : places_(static_cast<std::size_t>(replicas), ReplicaProgress{.steps = steps}) {}

  void came(int replica, std::int64_t steps) {
    const std::lock_guard lock(mutex_);
    at(replica).steps = steps;
  }
  void left(int replica) {
    const std::lock_guard lock(mutex_);
    at(replica).is_done = true;
  }
  // Records a loss; false if it had left before, as then it is not lost.
  bool lost(int replica) {
    const std::lock_guard lock(mutex_);
    if (at(replica).is_done) return false;
    return at(replica).is_lost = true;
  }

  // One entry for each replica.
  std::vector<ReplicaProgress> places() const {
    const std::lock_guard lock(mutex_);
    return places_;
  }

 private:
  ReplicaProgress& at(int replica) { return places_[static_cast<std::size_t>(replica)]; }

  mutable std::mutex mutex_;
  std::vector<ReplicaProgress> places_;
};

}  // namespace scaletrain::local_sgd
