// Asynchronous local SGD: the hub's rules for replicas that synchronize at times of their own.
//
// A replica that took the global weights b when there were n replicas and has trained to w adds
// (w - b) / n to the global weights and continues from the result. If all n replicas start from
// the same b and synchronize once, the global weights become their mean; otherwise each replica's
// change is added to what the others have added meanwhile. The changes that a lost replica has not
// added are lost with it.
//
// Staleness is bounded as in a stale synchronous parameter server (Ho et al., "More effective
// distributed ML via a stale synchronous parallel parameter server", NeurIPS 2013, section 3): a
// replica that is more than `staleness` synchronizations ahead of the slowest active replica gets
// no answer until that one catches up. With 0 all replicas wait for each other each time.
//
// In a replica of several ranks each rank sends the shards that it owns. Changes are added when all
// its ranks have sent theirs, and all ranks are answered at once: parameters that several ranks
// hold have the same bits on all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/dist/hub/hub.h"
#include "lib/local_sgd/hub_ranks.h"
#include "lib/local_sgd/membership.h"

namespace scaletrain::local_sgd {

class AsyncCoordinator : public dist::HubRules {
 public:
  // `hub`: the hub's ranks. `parts`: flat initial weights of place 0, fp32 on the CPU; the other
  // ranks of replica 0 send the initial weights of their places (kInitialPart).
  AsyncCoordinator(HubRanks hub, const std::vector<at::Tensor>& parts, std::int64_t staleness,
                   std::shared_ptr<Membership> membership);

  void received(int rank, dist::HubMessage message, const Send& send) override;
  void lost(int rank, const Send& send) override;

 private:
  struct Rank {
    std::vector<dist::HubMessage> changes = {};  // parts sent since the last synchronization
    bool synchronizes = false;                   // has sent all parts (kSynchronize)
    bool has_left = false;
  };
  struct Replica {
    std::int64_t synchronizations = 0;
    double share = 1;       // 1 / n
    bool is_active = true;  // trains and will synchronize again
    bool is_gone = false;   // left or was lost before training was over
    bool waits = false;     // its ranks wait for answers
  };
  Rank& at(int replica, int place) {
    return ranks_[static_cast<std::size_t>(hub_.rank(replica, place))];
  }
  template <class Is>
  bool all_of(int replica, const Is& is);
  double share() const;
  void add_changes(int replica, std::int64_t step);
  void leave(int rank, bool is_over, const Send& send);
  void answer(int rank, std::int32_t kind, std::int32_t part, const Send& send) const;
  void answer_all_of(int replica, const Send& send);
  void answer_waiting(const Send& send);
  bool is_too_far_ahead(const Replica& replica) const;

  HubRanks hub_;
  std::vector<std::vector<at::Tensor>> parts_;  // global weights of each place
  std::int64_t staleness_;
  std::shared_ptr<Membership> membership_;
  std::vector<Rank> ranks_;
  std::vector<Replica> replicas_;
  bool stop_requested_ = false, is_closed_ = false;
  bool waits_for_all_ = false;  // rank 0 waits for all others to leave
};

}  // namespace scaletrain::local_sgd
