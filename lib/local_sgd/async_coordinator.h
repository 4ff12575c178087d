// Asynchronous local SGD: the coordinator of replicas that synchronize at times of their own.
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
#include <vector>

#include "lib/local_sgd/coordinator.h"

namespace scaletrain::local_sgd {

class AsyncCoordinator : public Coordinator {
 public:
  // The ranks of replica 0 send the initial weights (kInitialPart). `steps` of training are done.
  AsyncCoordinator(HubRanks hub, std::int64_t steps, std::int64_t staleness);

 private:
  struct Replica {
    std::int64_t synchronizations = 0;
    double share = 1;  // 1 / n
    bool waits =
        false;  // the replica's changes are in the global weights; its ranks wait for answers
  };
  void handle(int rank, dist::HubMessage message, const Send& send) override;
  void advance(const Send& send) override;
  void all_left(int rank, const Send& send) override;
  double share() const;
  bool stop_requested() const;
  bool is_too_far_ahead(const Replica& replica) const;
  void add_changes(int number);
  void answer(int number, const Send& send);
  void send_part(int rank, std::size_t part, const Send& send) const;

  std::int64_t staleness_;
  std::vector<std::vector<at::Tensor>> parts_;  // global weights of each place, fp32 on the CPU
  std::vector<Replica> replicas_;
};

}  // namespace scaletrain::local_sgd
