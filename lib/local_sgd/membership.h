// Membership: progress and presence of each decoupled replica. The coordinator's thread writes it,
// rank 0's training reads it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace scaletrain::local_sgd {

struct ReplicaProgress {
  std::int64_t steps = 0;  // steps of training that the global weights include
  bool has_left = false;   // in an orderly way
  bool is_lost = false;    // ended without leaving
};

class Membership {
 public:
  Membership(int replicas, std::int64_t steps)
      : replicas_(static_cast<std::size_t>(replicas), ReplicaProgress{.steps = steps}) {}

  void advance(int replica, std::int64_t steps) {
    const std::lock_guard lock(mutex_);
    at(replica).steps = steps;
  }
  void leave(int replica) {
    const std::lock_guard lock(mutex_);
    at(replica).has_left = true;
  }
  // Records a loss; false if the replica had left before: then it is not lost.
  bool lose(int replica) {
    const std::lock_guard lock(mutex_);
    if (at(replica).has_left) return false;
    return at(replica).is_lost = true;
  }

  // One entry for each replica.
  std::vector<ReplicaProgress> all() const {
    const std::lock_guard lock(mutex_);
    return replicas_;
  }

 private:
  ReplicaProgress& at(int replica) { return replicas_[static_cast<std::size_t>(replica)]; }

  mutable std::mutex mutex_;
  std::vector<ReplicaProgress> replicas_;
};

}  // namespace scaletrain::local_sgd
