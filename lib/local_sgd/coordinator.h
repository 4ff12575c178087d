// Base of the coordinators of decoupled replicas: rules of the hub on rank 0 (lib/dist/hub/hub.h).
// It keeps what each rank has sent and the membership; derived classes decide when to answer.
//
// A replica of several ranks has sent a message when all its ranks have, has left when all its
// ranks have, and is lost with the first of its ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "lib/dist/hub/hub.h"
#include "lib/local_sgd/hub_ranks.h"
#include "lib/local_sgd/replicas.h"

namespace scaletrain::local_sgd {

class Coordinator : public dist::HubRules {
 public:
  // `steps`: optimizer steps that are done when training starts or resumes.
  Coordinator(HubRanks hub, std::int64_t steps);

  void received(int rank, dist::HubMessage message, const Send& send) override;
  void lost(int rank, const Send& send) override;
  // Progress of each replica. Other threads may call it.
  std::vector<ReplicaProgress> progress() const;

 protected:
  // Messages of a rank that are not answered yet.
  struct Rank {
    bool is_active = true;                          // sends further messages
    bool has_left = false, has_finished = false;    // sent kLeave; sent it after the last step
    std::vector<dist::HubMessage> parts = {};       // kPart
    std::optional<std::int64_t> synchronizes = {};  // step in the rank's kSynchronize message
    std::optional<std::int64_t> stop = {};          // step in the rank's kStop message; never reset
    std::int32_t awaits = 0;                        // kAwaitAll or kAwaitStates
  };

  // Handles the messages of one mode.
  virtual void handle(int rank, dist::HubMessage message, const Send& send) = 0;
  // Sends every answer that is possible now.
  virtual void advance(const Send& send) = 0;
  // Called after `rank` got the answer to kAwaitAll.
  virtual void all_left(int /*rank*/, const Send& /*send*/) {}

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  // True if `is` holds for one or for all ranks of a replica.
  template <class Is>
  bool any_of(int replica, const Is& is) const {
    const auto first = ranks_.begin() + hub_.rank(replica, 0);
    return std::any_of(first, first + hub_.places, is);
  }
  template <class Is>
  bool all_of(int replica, const Is& is) const {
    return !any_of(replica, [&](const Rank& one) { return !is(one); });
  }
  bool is_active(int replica) const {
    return any_of(replica, [](const Rank& one) { return one.is_active; });
  }
  // Ignores the replica from now on, and what it has sent.
  void drop(int replica);
  void set_steps(int replica, std::int64_t steps);

  const HubRanks hub_;
  std::vector<Rank> ranks_;

 private:
  void leave(int rank, const Send& send);
  void answer_awaiting(const Send& send);

  mutable std::mutex mutex_;
  std::vector<ReplicaProgress> progress_;
};

}  // namespace scaletrain::local_sgd
