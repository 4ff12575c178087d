// Decides how a job continues after a round: it ends with a status, or another round is formed.
#pragma once

#include <chrono>
#include <optional>

#include "launcher/agents/judge.h"
#include "launcher/agents/leader_options.h"
#include "launcher/agents/membership.h"
#include "launcher/agents/records.h"
#include "launcher/workers/restarts.h"
#include "lib/core/clock.h"

namespace scaletrain::launcher {

inline constexpr const char* kTooFew = "\n  too few nodes are left to continue";

struct RoundDecision {
  Verdict verdict;
  std::chrono::milliseconds wait{0};  // before the next round is formed
};

class RoundVerdict {
 public:
  // All arguments must outlive this object; a restart is counted in `restarts`.
  RoundVerdict(const LeaderOptions& options, const Membership& membership, const JobState& state,
               Restarts& restarts)
      : options_(options), membership_(membership), state_(state), restarts_(restarts) {}

  // Returns nullopt until every member of the round has ended.
  std::optional<RoundDecision> decide(core::SteadyTime round_start, core::SteadyTime now) const;

 private:
  Judgement judgement(std::vector<const Peer*> members) const;
  RoundDecision after_stop(const Judgement& judgement) const;
  RoundDecision after_failure(const Failure& failure, core::SteadyTime round_start,
                              core::SteadyTime now) const;
  Verdict on_done(const Judgement& judgement) const;
  bool may_go_on() const;
  bool is_run_done(const Judgement& judgement) const;

  const LeaderOptions& options_;
  const Membership& membership_;
  const JobState& state_;
  Restarts& restarts_;
};

}  // namespace scaletrain::launcher
