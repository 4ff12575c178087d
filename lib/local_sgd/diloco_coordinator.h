// Coordinator of decoupled DiLoCo replicas: the hub's rules for replicas that synchronize at the
// same steps.
//
// A synchronization handles one part of the weights at a time: when every active replica has sent
// it, each gets the mean over them. It is summed in the order of ranks, so its bits do not depend
// on the order of arrival; they equal those of the all-reduce over shared memory, which also adds
// fp16 and bf16 in fp32. The coordinator does not wait for a lost replica, and drops the parts that
// it had sent to a synchronization that is not over.
//
// A replica of several ranks has sent a part when each rank has sent its shard, and each rank gets
// the mean over its place in all replicas. So parameters that several ranks hold get a mean over
// the same replicas. A replica is lost with the first of its ranks; each decision about a replica
// is sent to all of its ranks at once.
//
// Stop: a replica that is to stop sends its step and waits; the coordinator asks the others, who
// send theirs at their next step or while they wait, and answers all with the furthest step. A
// synchronization under way is given up: none ends while a replica has not joined it. Then all
// train to that step, as far as time allows, and synchronize there.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/dist/hub/hub.h"
#include "lib/local_sgd/hub_ranks.h"
#include "lib/local_sgd/membership.h"

namespace scaletrain::local_sgd {

class DilocoCoordinator : public dist::HubRules {
 public:
  // `ranks`: the hub's; parts have dtype `type`.
  DilocoCoordinator(HubRanks ranks, std::shared_ptr<Membership> membership,
                    at::ScalarType type = at::kFloat);

  void received(int rank, dist::HubMessage message, const Send& send) override;
  void lost(int rank, const Send& send) override;

 private:
  struct Rank {
    bool is_active = true;                          // sends further messages
    bool has_left = false;                          // has left at its end, as opposed to being lost
    std::optional<dist::HubMessage> part = {};      // part whose mean it waits for
    std::optional<std::int64_t> synchronizes = {};  // step of its kSynchronize
    std::optional<std::int64_t> stop = {};          // step that it has sent with kStop
    std::optional<std::int64_t> reads_request = {};  // number of the request that it waits for
    bool waits_for_states = false, waits_for_all = false;
  };
  // Replica-local tensors that a rank has sent for the newest request, by number.
  struct States {
    std::map<std::int32_t, std::vector<std::byte>> tensors = {};
    bool is_complete = false;
  };
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void leave(int rank, const Send& send);
  void request_stop(const Send& send);
  void give_up();
  void drop(int replica);
  // Sends every answer that is possible now.
  void advance(const Send& send);
  void answer_stop(const Send& send);
  void answer_parts(const Send& send);
  void answer_part(int place, const Send& send);
  void answer_synchronize(const Send& send);
  void answer_requests(const Send& send);
  void answer_states(const Send& send);
  void answer_others(const Send& send);

  // True if `has` holds for all active ranks from `first` on.
  template <class Has>
  bool all_active(const Has& has, int first = 0) const;

  HubRanks hub_;
  std::shared_ptr<Membership> membership_;
  at::ScalarType type_;
  std::vector<Rank> ranks_;
  std::vector<States> states_;  // by rank
  enum class Stop { kNone, kRequested, kAgreed } stop_ = Stop::kNone;
  std::vector<std::int32_t> requests_;  // of rank 0, by number from 1
};

}  // namespace scaletrain::local_sgd
