#include "launcher/agents/round_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "launcher/agents/lost_replicas.h"

namespace scaletrain::launcher {
namespace {

using core::SteadyTime;
using std::chrono::milliseconds;

constexpr const char* kMeetAgain = "\n  the other nodes continue without it";

bool is_lost_node(const Failure& failure) { return failure.rank < 0 && failure.followed; }

}  // namespace

std::optional<RoundDecision> RoundVerdict::decide(SteadyTime round_start, SteadyTime now) const {
  const std::vector<const Peer*> members = membership_.members();
  if (!std::ranges::all_of(members, &Peer::ended)) return std::nullopt;
  const Judgement found = judgement(members);
  if (is_run_done(found)) return RoundDecision{.verdict = on_done(found)};
  switch (found.kind) {
    case Judgement::Kind::kSucceeded:
      break;
    case Judgement::Kind::kFailed:
      return after_failure(*found.failure, round_start, now);
    case Judgement::Kind::kStopped:
      return after_stop(found);
    case Judgement::Kind::kRegroup: {
      RoundDecision decision;
      decision.verdict.again = true;
      decision.verdict.text = fmt::format("{}: the nodes rendezvous again", state_.reason);
      return decision;
    }
  }
  return RoundDecision{};
}

Judgement RoundVerdict::judgement(std::vector<const Peer*> members) const {
  std::erase_if(members, [](const Peer* peer) { return peer->is_tolerated && !peer->report; });
  std::stable_sort(members.begin(), members.end(), [](const Peer* a, const Peer* b) {
    return std::make_pair(!a->report, a->arrival) < std::make_pair(!b->report, b->arrival);
  });
  // Other nodes may fail because a node is gone, and report that before the loss is certain.
  const auto first_report = std::find_if(members.begin(), members.end(), [](const Peer* peer) {
    return peer->report && peer->report->failure;
  });
  std::vector<NodeEnd> ends;
  ends.reserve(members.size());
  for (const Peer* const peer : members) {
    ends.push_back(
        {.node = peer->rank,
         .host = peer->join.candidate.host,
         .lost = peer->report ? "" : peer->lost,
         .lost_first = !peer->report && !peer->lost.empty() &&
                       (first_report == members.end() || peer->alive <= (*first_report)->reported),
         .report = peer->report.value_or(Report{})});
  }
  return judge(ends);
}

RoundDecision RoundVerdict::after_stop(const Judgement& judgement) const {
  RoundDecision decision;
  Verdict& verdict = decision.verdict;
  verdict.code = judgement.status;
  verdict.text = "stopped: " + judgement.reason;
  if (!state_.lost.empty()) verdict.text += "\n  lost before: " + LostReplicas(state_.lost).text();
  // A user who stops one node means the job; a scheduler may mean that node only.
  if (!options_.terms.elastic() || judgement.signal == SIGINT) return decision;
  verdict.again = may_go_on();
  verdict.text += verdict.again ? kMeetAgain : kTooFew;
  return decision;
}

RoundDecision RoundVerdict::after_failure(const Failure& failure, SteadyTime round_start,
                                          SteadyTime now) const {
  RoundDecision decision{.verdict = {.round = 0,
                                     .again = false,
                                     .code = options_.exit_status(failure),
                                     .text = render(failure),
                                     .failure = failure}};
  Verdict& verdict = decision.verdict;
  if (is_lost_node(failure) && options_.terms.elastic()) {
    verdict.again = may_go_on();
    verdict.text += verdict.again ? kMeetAgain : kTooFew;
    return decision;
  }
  if (!options_.worth_restart(failure)) return decision;
  const auto lasted = std::chrono::duration_cast<milliseconds>(now - round_start);
  if (const std::optional<milliseconds> next = restarts_.next(now, lasted)) {
    verdict.again = true;
    verdict.text += "\n  " + restarts_.text(*next);
    decision.wait = *next;
  } else {
    verdict.text += restarts_.refusal();
  }
  return decision;
}

// Verdict if the run was done before the round's end.
Verdict RoundVerdict::on_done(const Judgement& judgement) const {
  std::string text = state_.reason;
  if (judgement.failure) text = "warning: " + render(*judgement.failure);
  if (judgement.kind == Judgement::Kind::kStopped) text = "stopped: " + judgement.reason;
  return {.round = 0,
          .again = false,
          .code = 0,
          .text = text + "\n  the run was done before that",
          .failure = {}};
}

// True if the remaining nodes suffice for another round and no other part of the last round can
// continue.
bool RoundVerdict::may_go_on() const {
  int there = 0, staying = 0, leaving = 0;
  for (const Peer& peer : membership_.peers()) {
    if (peer.in_round() && peer.leaves()) ++leaving;
    if (!peer.lost.empty() || peer.leaves()) continue;
    ++there;
    if (peer.in_round()) ++staying;
  }
  // Nodes that leave by themselves form no other part. This node has the store, which decides a
  // tie.
  return there >= options_.terms.min_nodes && 2 * staying >= state_.nodes - leaving;
}

// True if the run had reached its end before a node was lost or left, so that nothing needs to be
// repeated. A worker's failure is still reported.
bool RoundVerdict::is_run_done(const Judgement& judgement) const {
  if (judgement.kind == Judgement::Kind::kSucceeded) return false;
  if (judgement.kind == Judgement::Kind::kFailed && !is_lost_node(*judgement.failure)) return false;
  return options_.is_done();
}

}  // namespace scaletrain::launcher
