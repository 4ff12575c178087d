// How launchers leave a job, the one that leads among them: a part of Leader.
#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "launcher/agents/leader.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {
namespace {

using core::SteadyTime;
using std::chrono::milliseconds;

std::string reason_of(const Departure& departure) {
  if (departure.signal == 0) return "its launcher was stopped";
  return "its launcher heard " + core::signal_name(departure.signal);
}

}  // namespace

void Leader::leave(const Departure& departure, SteadyTime now) {
  const bool leads = departure.agent == options_.agent;
  Peer* const peer = roster_.find(departure.agent);
  if (peer == nullptr) {  // its own agent's message has not been read yet
    is_gone_ = is_gone_ || (leads && !ended());
  } else if (ended() || !peer->lost.empty()) {
    lose(*peer, kWasStopped);
  } else if (board_.phase != Phase::kJoining && peer->in_round()) {
    leave_round(*peer, departure, now);
  } else {
    leave_between_rounds(*peer, departure, now);
  }
}

// How the job goes on is a matter of the round's verdict.
void Leader::leave_round(Peer& peer, const Departure& departure, SteadyTime now) {
  if (!peer.report) {  // it has not started its workers
    peer.report = Report{
        .agent = peer.agent(), .round = board_.round, .outcome = Outcome::kStopped, .failure = {}};
    peer.arrival = ++arrivals_;
    peer.reported = now;
  }
  if (!peer.leaves()) {
    peer.report->signal = departure.signal;
    peer.report->status = departure.status;
    peer.report->reason = reason_of(departure);
  }
  if (peer.agent() != options_.agent) lose(peer, kWasStopped);
}

// Ctrl-C at one launcher ends the job. Any other signal concerns that launcher alone, unless it
// leads: then another one leads, where those who are there are enough and may go on without it.
void Leader::leave_between_rounds(Peer& peer, const Departure& departure, SteadyTime now) {
  const bool leads = peer.agent() == options_.agent;
  const bool decides = has_quorum();
  lose(peer, kWasStopped);
  if (board_.phase != Phase::kJoining) return;  // it had no part in the round
  if (departure.signal != SIGINT && !leads) return;
  Verdict verdict{
      .round = 0,
      .again = false,
      .code = departure.status,
      .text = fmt::format("stopped: host {}: {}", peer.join.candidate.host, reason_of(departure)),
      .failure = {}};
  if (departure.signal != SIGINT && options_.terms.elastic()) {
    is_gone_ = !decides;  // nodes that came search for the others again
    if (is_gone_) return;
    if (roster_.present() >= options_.terms.min_nodes) return hand_over(now);
    verdict.text += kTooFew;
  }
  conclude(std::move(verdict), milliseconds(0), now);
}

// True if this node's report ends the round on the others too.
bool Leader::stops_round(const Peer& peer) const {
  if (!peer.report) return false;
  if (peer.report->outcome != Outcome::kSucceeded) return true;
  return peer.leaves() && (peer.report->signal == SIGINT || peer.agent() == options_.agent);
}

// The leader leaves. The present nodes count as a round of their own, which never runs: more than
// half of them go on together (LastRound), and the first of them leads at once.
void Leader::hand_over(SteadyTime now) {
  ++board_.round;
  board_.nodes = 0;
  board_.candidates.clear();
  for (const Peer& peer : roster_.peers()) {
    if (!peer.lost.empty()) continue;
    store_.set("place/" + peer.agent(),
               to_line(Place{.round = board_.round, .rank = board_.nodes++, .refused = ""}));
    if (board_.candidates.size() < kCandidates) board_.candidates.push_back(peer.join.candidate);
  }
  if (board_.candidates.empty()) {  // nobody is there to go on
    is_gone_ = true;
    return show();
  }
  const Candidate& heir = board_.candidates.front();
  store_.set("moved", to_line(heir));
  journal_.write("hand over", {{"to", heir.agent}, {"nodes", board_.nodes}});
  board_.handed_over = true;
  over_since_ = now;
  show();
}

}  // namespace scaletrain::launcher
