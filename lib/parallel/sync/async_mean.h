// The common weights of replicas that come to them when they can: a hub's rules.
//
// A replica that took common weights b when there were n replicas and has trained to w adds
// (w - b) / n to the common weights and goes on from these. So where all n come once from the same
// b, the common weights are the mean of theirs; where they come at other times, each one's part
// is added to what the others have made of them meanwhile. A replica that is lost takes with it
// what it had not added.
//
// Staleness is bounded as in a stale synchronous parameter server (Ho et al., "More effective
// distributed ML via a stale synchronous parallel parameter server", NeurIPS 2013, section 3): who
// has exchanged more than `staleness` times more often than the slowest replica that is there gets
// no answer until that one has come. With 0 all wait for each other at each exchange.
//
// Of a replica of several ranks each has what it owns of the weights. What they have learned is
// added when all of them have given it, and all of them are answered at once: so what several
// ranks have copies of has the same bits on all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/dist/hub/hub.h"
#include "lib/parallel/sync/replica_roll.h"
#include "lib/parallel/sync/seats.h"

namespace scaletrain::parallel {

class AsyncMean : public dist::HubRules {
 public:
  // The hub's ranks are `seats`. `parts`: the weights that all replicas begin with, flat, of fp32
  // on the host; of the first place, those of others come from the ranks of replica 0 (kBase).
  AsyncMean(Seats seats, const std::vector<at::Tensor>& parts, std::int64_t staleness,
            std::shared_ptr<ReplicaRoll> roll);

  void received(int rank, dist::HubMessage message, const Send& send) override;
  void lost(int rank, const Send& send) override;

 private:
  struct Rank {
    std::vector<dist::HubMessage> given = {};  // parts, since the replica's last exchange
    bool meets = false;                        // it has given all of them
    bool has_left = false;
  };
  struct Replica {
    std::int64_t exchanges = 0;
    double share = 1;      // 1 / n
    bool is_there = true;  // trains and comes again
    bool is_gone = false;  // before training was over
    bool waits = false;    // for the answers to what its ranks have given
  };
  Rank& at(int replica, int place) {
    return ranks_[static_cast<std::size_t>(seats_.rank(replica, place))];
  }
  template <class Is>
  bool all_of(int replica, const Is& is);
  double share() const;
  void meet(int replica, std::int64_t step);
  void leave(int rank, bool is_over, const Send& send);
  void answer(int rank, std::int32_t kind, std::int32_t part, const Send& send) const;
  void answer_all_of(int replica, const Send& send);
  void answer_waiting(const Send& send);
  bool is_too_far_ahead(const Replica& replica) const;

  Seats seats_;
  std::vector<std::vector<at::Tensor>> parts_;  // by place
  std::int64_t staleness_;
  std::shared_ptr<ReplicaRoll> roll_;
  std::vector<Rank> ranks_;
  std::vector<Replica> replicas_;
  bool stops_ = false, is_closed_ = false;
  bool waits_for_all_ = false;  // rank 0
};

}  // namespace scaletrain::parallel
