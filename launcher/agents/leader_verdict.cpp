// How a leader ends a round: the part of Leader that judges.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "launcher/agents/judge.h"
#include "launcher/agents/leader.h"
#include "launcher/agents/lost_replicas.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using core::SteadyTime;
using std::chrono::milliseconds;

constexpr const char* kMeetAgain = "\n  the other nodes meet again";

bool is_lost_node(const Failure& failure) { return failure.rank < 0 && failure.followed; }

// Verdict on the end of a round if the run was done by then.
Verdict verdict_on_done(const Judgement& judgement, const Board& board) {
  std::string text = board.reason;
  if (judgement.failure) text = "warning: " + render(*judgement.failure);
  if (judgement.kind == Judgement::Kind::kStopped) text = "stopped: " + judgement.reason;
  return {.round = 0,
          .again = false,
          .code = 0,
          .text = text + "\n  the run was done before that",
          .failure = {}};
}

}  // namespace

void Leader::try_to_judge(SteadyTime now) {
  std::vector<const Peer*> members = roster_.members();
  if (!std::all_of(members.begin(), members.end(),
                   [](const Peer* peer) { return peer->ended(); })) {
    return;
  }
  std::erase_if(members, [](const Peer* peer) { return peer->is_outlived && !peer->report; });
  std::stable_sort(members.begin(), members.end(), [](const Peer* a, const Peer* b) {
    return std::make_pair(!a->report, a->arrival) < std::make_pair(!b->report, b->arrival);
  });
  // Others may fail in their own way because a node is gone, and be heard of before that is clear.
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
  const Judgement judgement = judge(ends);
  Verdict verdict;
  milliseconds wait{0};
  if (is_run_done(judgement)) return conclude(verdict_on_done(judgement, board_), wait, now);
  switch (judgement.kind) {
    case Judgement::Kind::kSucceeded:
      break;
    case Judgement::Kind::kFailed:
      verdict = after_failure(*judgement.failure, wait, now);
      break;
    case Judgement::Kind::kStopped:
      verdict.code = judgement.status;
      verdict.text = "stopped: " + judgement.reason;
      if (!board_.lost.empty()) {
        verdict.text += "\n  lost before: " + LostReplicas(board_.lost).text();
      }
      // A person who stops one node means the job; a scheduler may want that node only.
      if (!options_.terms.elastic() || judgement.signal == SIGINT) break;
      verdict.again = may_go_on();
      verdict.text += verdict.again ? kMeetAgain : kTooFew;
      break;
    case Judgement::Kind::kRegroup:
      verdict.again = true;
      verdict.text = fmt::format("{}: the nodes meet again", board_.reason);
      break;
  }
  conclude(std::move(verdict), wait, now);
}

// True if the staying nodes suffice for another round and no other part of the last one can.
bool Leader::may_go_on() const {
  int there = 0, staying = 0, leaving = 0;
  for (const Peer& peer : roster_.peers()) {
    if (peer.in_round() && peer.leaves()) ++leaving;
    if (!peer.lost.empty() || peer.leaves()) continue;
    ++there;
    if (peer.in_round()) ++staying;
  }
  // Nodes that leave by themselves form no other part. This is the node with the store, which
  // decides a tie.
  return there >= options_.terms.min_nodes && 2 * staying >= board_.nodes - leaving;
}

// True if the run had reached its end before a node was lost or left: nothing is to be repeated.
// A worker that failed is reported nevertheless.
bool Leader::is_run_done(const Judgement& judgement) const {
  if (judgement.kind == Judgement::Kind::kSucceeded) return false;
  if (judgement.kind == Judgement::Kind::kFailed && !is_lost_node(*judgement.failure)) return false;
  return options_.is_done();
}

Verdict Leader::after_failure(const Failure& failure, milliseconds& wait, SteadyTime now) {
  Verdict verdict{.round = 0,
                  .again = false,
                  .code = options_.exit_status(failure),
                  .text = render(failure),
                  .failure = failure};
  if (is_lost_node(failure) && options_.terms.elastic()) {
    verdict.again = may_go_on();
    verdict.text += verdict.again ? kMeetAgain : kTooFew;
    return verdict;
  }
  if (!options_.worth_restart(failure)) return verdict;
  const auto lasted = std::chrono::duration_cast<milliseconds>(now - round_start_);
  if (const std::optional<milliseconds> next = restarts_.next(now, lasted)) {
    verdict.again = true;
    verdict.text += "\n  " + restarts_.text(*next);
    wait = *next;
  } else {
    verdict.text += restarts_.refusal();
  }
  return verdict;
}

Verdict Leader::time_out() const {
  const AgentTiming& timing = options_.timing;
  std::string text = fmt::format("rendezvous: {} of {} nodes came within {:g} s", roster_.present(),
                                 options_.terms.nnodes,
                                 std::chrono::duration<double>(timing.join_timeout).count());
  text += missing_text();
  text +=
      "\n  look at the launchers of the missing nodes, and check that every node was started "
      "with the same --nnodes and address";
  return {.round = 0,
          .again = false,
          .code = static_cast<int>(core::ExitCode::kTemporary),
          .text = std::move(text),
          .failure = {}};
}

// Says what a round that could begin with `nodes` nodes (0: none yet) waits for.
std::string Leader::awaited(int nodes) const {
  std::string text =
      fmt::format("waiting: {} of {} nodes are here", roster_.present(), options_.terms.nnodes);
  if (nodes > 0) {
    return text + fmt::format("; the last call for more is {:g} s",
                              std::chrono::duration<double>(options_.timing.last_call).count());
  }
  return text + missing_text();
}

std::string Leader::missing_text() const {
  if (!has_quorum()) {
    return fmt::format("; more than half of the {} nodes of the last round must come",
                       options_.last.nodes);
  }
  if (options_.terms.fixed_ranks) return "; missing: " + roster_.missing_nodes();
  if (roster_.present() < options_.terms.min_nodes) return "";
  return fmt::format("; the batch does not divide among the ranks of {} nodes", roster_.present());
}

void Leader::conclude(Verdict verdict, milliseconds wait, SteadyTime now) {
  verdict.round = board_.round;
  store_.set(fmt::format("verdict/{}", ++board_.verdicts), to_line(verdict));
  journal_.write("verdict", {{"round", board_.round},
                             {"again", verdict.again},
                             {"code", verdict.code},
                             {"text", verdict.text}});
  board_.restart = restarts_.used();
  if (verdict.again) {
    for (Peer& peer : roster_.peers()) {
      if (peer.leaves()) lose(peer, kWasStopped);
    }
    roster_.clear_round();
    form_from_ = now + wait;
    join_until_ = form_from_ + options_.timing.join_timeout;
    board_.phase = Phase::kJoining;
    board_.reason.clear();
    if (roster_.find(options_.agent) == nullptr) return hand_over(now);
  } else {
    board_.phase = Phase::kOver;
    over_since_ = now;
  }
  show();
}

}  // namespace scaletrain::launcher
