// The mean over replicas that come to each exchange together: a hub's rules.
//
// A round is of one part of the weights: when every replica that is there has given it, each gets
// the mean over them, whose sum is in the order of their ranks, so that its bits do not depend on
// who came first; they are those of all-reduce over the memory of one host, which adds halves in
// fp32 too. A replica that is lost is waited for no more; what it had given to a round that is not
// over is left out.
//
// A replica of several ranks has given a part when each of its ranks has given what it owns of it,
// and each gets the mean over those at its place in the others: so of what several ranks have
// copies, each has the mean over the same replicas. A replica is lost with the first of its ranks.
// All that is decided for a replica is answered to all of its ranks at once.
//
// A stop: who hears of it says at which step it is and waits; the hub asks the others, who say it
// at their next step, or where they wait in an exchange, and answers all with the step of the
// furthest. That exchange is given up: none is over while a replica has not come to it. Then all
// train to that step, as far as time allows, and exchange there.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/dist/hub/hub.h"
#include "lib/parallel/sync/given_tensors.h"
#include "lib/parallel/sync/replica_roll.h"
#include "lib/parallel/sync/seats.h"

namespace scaletrain::parallel {

class RoundMean : public dist::HubRules {
 public:
  // The hub's ranks are `seats`; `roll` is of its replicas; parts are of `type`.
  RoundMean(Seats seats, std::shared_ptr<ReplicaRoll> roll, std::shared_ptr<GivenTensors> given,
            at::ScalarType type = at::kFloat);

  void received(int rank, dist::HubMessage message, const Send& send) override;
  void lost(int rank, const Send& send) override;

 private:
  struct Rank {
    bool is_there = true;                       // comes again
    bool has_left = false;                      // in good order
    std::optional<dist::HubMessage> part = {};  // that it waits for the mean of
    std::optional<std::int64_t> meets = {};     // at which step, where it waits for the others
    std::optional<std::int64_t> stops = {};     // at which step it is, where all shall stop
    std::optional<std::int64_t> asks = {};      // in which round, what rank 0 wishes
    bool has_given = false;                     // in this round
    bool waits_for_given = false, waits_for_all = false;
  };
  void leave(int rank, const Send& send);
  void ask_all(const Send& send);
  void give_up();
  void drop(int replica);
  // Answers whatever can be answered now.
  void advance(const Send& send);
  void answer_stop(const Send& send);
  void answer_parts(const Send& send);
  void answer_part(int place, const Send& send);
  void answer_meets(const Send& send);
  void answer_wishes(const Send& send);
  void answer_given(const Send& send);
  void answer_others(const Send& send);

  // Whether that is so of every rank that is there, or of those but the first replica's.
  template <class Has>
  bool all_there(const Has& has) const;
  template <class Has>
  bool others_there(const Has& has) const;

  Seats seats_;
  std::shared_ptr<ReplicaRoll> roll_;
  std::shared_ptr<GivenTensors> given_;
  at::ScalarType type_;
  std::vector<Rank> ranks_;
  enum class Stop { kNone, kAsked, kAgreed } stop_ = Stop::kNone;
  std::vector<std::int32_t> wishes_;  // rank 0's, by round from 1
};

}  // namespace scaletrain::parallel
