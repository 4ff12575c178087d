// Synchronous rounds: the hub's rules for replicas that synchronize at the same steps.
//
// A round handles one part of the weights: when every active replica has sent it, each gets the
// mean over them. It is summed in the order of ranks, so its bits do not depend on the order of
// arrival; they equal those of the all-reduce over shared memory, which also adds fp16 and bf16 in
// fp32. The hub does not wait for a lost replica, and drops what it had sent to a round that is not
// over.
//
// A replica of several ranks has sent a part when each rank has sent its shard, and each rank gets
// the mean over its place in all replicas. So parameters that several ranks hold get a mean over
// the same replicas. A replica is lost with the first of its ranks; each decision about a replica
// is sent to all of its ranks at once.
//
// Stop: a replica that is to stop sends its step and waits; the hub asks the others, who send
// theirs at their next step or while they wait, and answers all with the furthest step. A round
// under way is given up: none ends while a replica has not joined it. Then all train to that step,
// as far as time allows, and synchronize there.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/dist/hub/hub.h"
#include "lib/local_sgd/hub_ranks.h"
#include "lib/local_sgd/membership.h"
#include "lib/local_sgd/received_tensors.h"

namespace scaletrain::local_sgd {

class DilocoCoordinator : public dist::HubRules {
 public:
  // `hub`: the hub's ranks; `roll`: their replicas; parts have dtype `type`.
  DilocoCoordinator(HubRanks hub, std::shared_ptr<Membership> roll,
                    std::shared_ptr<ReceivedTensors> given, at::ScalarType type = at::kFloat);

  void received(int rank, dist::HubMessage message, const Send& send) override;
  void lost(int rank, const Send& send) override;

 private:
  struct Rank {
    bool is_there = true;                       // sends further messages
    bool has_left = false;                      // in an orderly way
    std::optional<dist::HubMessage> part = {};  // part whose mean it waits for
    std::optional<std::int64_t> meets = {};  // step at which it waits for the others (kSynchronize)
    std::optional<std::int64_t> stops = {};  // step that it has sent with kStop
    std::optional<std::int64_t> asks = {};   // round whose request it asks for (kReadRequest)
    bool has_given = false;                  // kStatesSent, in this round
    bool waits_for_given = false, waits_for_all = false;
  };
  void leave(int rank, const Send& send);
  void ask_all(const Send& send);
  void give_up();
  void drop(int replica);
  // Sends every answer that is possible now.
  void advance(const Send& send);
  void answer_stop(const Send& send);
  void answer_parts(const Send& send);
  void answer_part(int place, const Send& send);
  void answer_meets(const Send& send);
  void answer_wishes(const Send& send);
  void answer_given(const Send& send);
  void answer_others(const Send& send);

  // True if `has` holds for all active ranks; others_there(): except rank 0's replica.
  template <class Has>
  bool all_there(const Has& has) const;
  template <class Has>
  bool others_there(const Has& has) const;

  HubRanks ranks_of_hub_;
  std::shared_ptr<Membership> roll_;
  std::shared_ptr<ReceivedTensors> given_;
  at::ScalarType type_;
  std::vector<Rank> ranks_;
  enum class Stop { kNone, kAsked, kAgreed } stop_ = Stop::kNone;
  std::vector<std::int32_t> wishes_;  // requests of rank 0, by round from 1
};

}  // namespace scaletrain::local_sgd
