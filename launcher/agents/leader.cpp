#include "launcher/agents/leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/agents/heartbeats.h"
#include "launcher/agents/lost_replicas.h"
#include "launcher/agents/waiting.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/subprocess.h"

namespace scaletrain::launcher {
namespace {

using core::SteadyTime;
using std::chrono::milliseconds;

// Time for which the store outlives the verdict, for agents that have not read it.
constexpr milliseconds kFarewell{5000};
// After this time the leader logs what the round is waiting for.
constexpr milliseconds kReportAfter{5000};

std::string named(const Peer& peer) {
  return peer.in_round() ? fmt::format("node {} (host {})", peer.rank, peer.join.candidate.host)
                         : fmt::format("host {}", peer.join.candidate.host);
}

std::string reason_of(const Departure& departure) {
  if (departure.signal == 0) return "its launcher was stopped";
  return "its launcher received " + core::signal_name(departure.signal);
}

}  // namespace

Leader::Leader(Options options, KeyStore& store, Journal& journal, SteadyTime now)
    : options_(std::move(options)),
      store_(store),
      journal_(journal),
      membership_(options_.terms),
      restarts_(options_.restarts, options_.restarts_used),
      inbox_(store),
      admission_(options_.terms.fixed_ranks, membership_, store, journal),
      verdict_(options_, membership_, state_, restarts_),
      publisher_(store, options_.timing.beat_every, now),
      last_step_(now),
      next_beat_(now),
      form_from_(now),
      join_until_(now + options_.timing.join_timeout) {
  state_.generation = options_.generation;
  state_.restart = options_.restarts_used;
  state_.round = options_.last.round;
  publisher_.publish(state_);
  publisher_.send_heartbeat(now, membership_.silence());
  store_.set("hello",
             to_line(Hello{.job = options_.terms.name,
                           .proof = proof_of("store", options_.terms.name, options_.terms.token),
                           .agent = options_.agent,
                           .host = options_.host,
                           .generation = options_.generation}));
  journal_.write("lead", {{"generation", options_.generation}});
}

void Leader::step(SteadyTime now) {
  if (now - last_step_ > options_.timing.lost_after / 2) {
    // This process itself stood still: nobody can be blamed for the silence.
    for (Peer& peer : membership_.peers()) peer.alive = now;
  }
  last_step_ = now;
  for (const Message& message : inbox_.read(now)) receive(message, now);
  watch_beats(now);
  if (admission_.settle_claims(now)) publisher_.publish(state_);
  switch (state_.phase) {
    case Phase::kJoining:
      try_to_form(now);
      break;
    case Phase::kFormed:
    case Phase::kRunning:
      watch_round(now);
      break;
    case Phase::kStopping:
      try_to_judge(now);
      break;
    case Phase::kOver:
      break;
  }
  publisher_.send_heartbeat(now, membership_.silence());
}

void Leader::publish(const Endpoint& workers_store, const std::string& plan) {
  if (state_.phase != Phase::kFormed) return;
  state_.store_host = workers_store.host;
  state_.store_port = workers_store.port;
  state_.plan = plan;
  state_.phase = Phase::kRunning;
  journal_.write("run", {{"round", state_.round}, {"restart", state_.restart}});
  publisher_.publish(state_);
}

bool Leader::finished(SteadyTime now) const {
  if (!ended() || is_gone_) return is_gone_;
  const bool all_know =
      std::all_of(membership_.peers().begin(), membership_.peers().end(), [&](const Peer& peer) {
        return peer.heard || !peer.lost.empty() || peer.agent() == options_.agent;
      });
  return all_know || now - over_since_ >= kFarewell;
}

void Leader::receive(const Message& message, SteadyTime now) {
  if (message.join) receive_join(*message.join, now);
  if (Peer* const peer = membership_.find(message.heard)) peer->heard = true;
  if (message.leaves) leave(*message.leaves, now);
  if (message.lost && message.lost->round == state_.round) note_lost(*message.lost);
  if (!message.report) return;
  Peer* const peer = membership_.find(message.report->agent);
  if (peer == nullptr || message.report->round != state_.round || peer->report) return;
  peer->report = *message.report;
  peer->arrival = ++arrivals_;
  peer->reported = now;
  journal_.write("report", {{"node", peer->rank},
                            {"round", state_.round},
                            {"outcome", static_cast<int>(message.report->outcome)}});
}

void Leader::receive_join(const Join& join, SteadyTime now) {
  if (admission_.refuse_unfit(join)) return publisher_.publish(state_);  // so that the agent looks
  if (ended()) return;  // the agent reads how the job ended, or who leads it
  if (Peer* const before = membership_.find(join.candidate.agent)) {
    lose(*before, "its connection to the store was lost");
    before->join.candidate.agent += " before";
  }
  admission_.admit(join, now);
}

void Leader::watch_beats(SteadyTime now) {
  if (now < next_beat_) return;
  next_beat_ = now + options_.timing.beat_every;
  for (Peer* const peer : read_heartbeats(store_, membership_, options_.timing.lost_after, now)) {
    lose(*peer, fmt::format("its launcher has sent no heartbeat for {:g} s",
                            std::chrono::duration<double>(options_.timing.lost_after).count()));
    store_.set(
        "place/" + peer->agent(),
        to_line(Assignment{.round = 0, .rank = -1, .refused = peer->lost, .given_up = true}));
  }
}

void Leader::lose(Peer& peer, const std::string& why) {
  if (!peer.lost.empty()) return;
  peer.lost = why;
  journal_.write("lose", {{"who", peer.agent()}, {"node", peer.rank}, {"why", why}});
}

void Leader::note_lost(LostReplica lost) {
  const int number = lost.number;
  LostReplicas known(state_.lost);
  if (!known.note(std::move(lost))) return;
  state_.lost = known.all();
  journal_.write("lose a replica", {{"round", state_.round}, {"replica", number}});
  publisher_.publish(state_);
}

// Records the replicas lost with this node; true if the round continues without them.
bool Leader::tolerates_loss(Peer& peer) {
  if (peer.is_tolerated || state_.phase != Phase::kRunning) return peer.is_tolerated;
  Failure failure{.host = peer.join.candidate.host, .node = peer.rank, .rank = -1};
  failure.status.code = static_cast<int>(core::ExitCode::kTemporary);
  failure.cause = peer.lost;
  for (const int number : options_.lost_with(peer.rank)) {
    note_lost({.round = state_.round, .number = number, .failure = failure});
    peer.is_tolerated = true;
  }
  return peer.is_tolerated;
}

// True if all remaining nodes of the last round are present; the last call is for others.
bool Leader::nobody_is_missing() const {
  if (state_.nodes > 0) return true;  // it led that round, and knows which nodes were lost
  const LastRound& last = options_.last;
  return last.nodes > 0 && membership_.came_back(last) >= last.nodes - (last.handed_over ? 0 : 1);
}

void Leader::try_to_form(SteadyTime now) {
  if (ended()) return;
  if (now < form_from_ || admission_.has_claims()) return;  // whose rank it is, is soon clear
  membership_.clear_round();
  const Peer* const own = membership_.find(options_.agent);
  const int nodes = own == nullptr || !membership_.has_quorum(options_.last)
                        ? 0
                        : options_.nodes_that_fit(membership_.present());
  if (nodes == 0) {
    enough_since_ = {};
    if (now >= join_until_) return time_out(now);
  } else {
    if (enough_since_ == SteadyTime{}) enough_since_ = now;
    const bool all = nodes == options_.terms.max_nodes || nobody_is_missing();
    if (all || now - enough_since_ >= options_.timing.last_call) return form(nodes, now);
  }
  if (state_.reason.empty() && now - form_from_ >= kReportAfter) {
    state_.reason =
        awaited_text(membership_, options_.terms, options_.timing, options_.last, nodes);
    publisher_.publish(state_);
  }
}

void Leader::form(int nodes, SteadyTime now) {
  ++state_.round;
  state_.nodes = nodes;
  state_.phase = Phase::kFormed;
  state_.reason.clear();
  state_.failed = false;
  state_.plan.clear();
  state_.candidates.clear();
  state_.replicas.clear();
  state_.lost.clear();
  options_.last = {};
  arrivals_ = 0;
  enough_since_ = {};
  round_start_ = now;
  membership_.rank(nodes, options_.agent);
  state_.one_host = membership_.on_one_host();
  for (const Peer* const peer : membership_.members()) {
    store_.set("place/" + peer->agent(),
               to_line(Assignment{.round = state_.round, .rank = peer->rank, .refused = ""}));
    if (state_.candidates.size() < kCandidates) {
      state_.candidates.push_back(peer->join.candidate);
    }
    if (!peer->join.replicas.empty()) state_.replicas.push_back(peer->join.replicas);
  }
  journal_.write("round", {{"round", state_.round}, {"nodes", nodes}});
  publisher_.publish(state_);
}

void Leader::watch_round(SteadyTime now) {
  bool all_ended = true;
  const Peer* waiting = nullptr;
  for (Peer& peer : membership_.peers()) {
    if (!peer.in_round()) {
      if (peer.lost.empty() && (waiting == nullptr || peer.joined < waiting->joined)) {
        waiting = &peer;
      }
      continue;
    }
    all_ended = all_ended && peer.ended();
    if (stops_round(peer)) {
      return stop_round(fmt::format("{}: its workers ended", named(peer)),
                        peer.report->outcome == Outcome::kFailed);
    }
    // A node that is lost after its workers succeeded has completed its part.
    if (!peer.lost.empty() && !peer.report && !tolerates_loss(peer)) {
      return stop_round(fmt::format("{}: {}", named(peer), peer.lost), true);
    }
  }
  if (all_ended) return stop_round("all workers are done", false);
  if (waiting != nullptr && state_.phase == Phase::kRunning &&
      now - waiting->joined >= options_.timing.last_call &&
      options_.nodes_that_fit(membership_.present()) > state_.nodes) {
    stop_round(fmt::format("{} joins", named(*waiting)), false);
  }
}

void Leader::stop_round(const std::string& reason, bool failed) {
  state_.phase = Phase::kStopping;
  state_.reason = reason;
  state_.failed = failed;
  journal_.write("stop", {{"round", state_.round}, {"reason", reason}});
  publisher_.publish(state_);
}

void Leader::try_to_judge(SteadyTime now) {
  if (std::optional<RoundDecision> decision = verdict_.decide(round_start_, now)) {
    conclude(std::move(decision->verdict), decision->wait, now);
  }
}

void Leader::time_out(SteadyTime now) {
  conclude({.round = 0,
            .again = false,
            .code = static_cast<int>(core::ExitCode::kTemporary),
            .text = late_nodes_text(membership_, options_.terms, options_.timing, options_.last),
            .failure = {}},
           milliseconds(0), now);
}

void Leader::conclude(Verdict verdict, milliseconds wait, SteadyTime now) {
  verdict.round = state_.round;
  store_.set(fmt::format("verdict/{}", ++state_.verdicts), to_line(verdict));
  journal_.write("verdict", {{"round", state_.round},
                             {"again", verdict.again},
                             {"code", verdict.code},
                             {"text", verdict.text}});
  state_.restart = restarts_.used();
  if (verdict.again) {
    for (Peer& peer : membership_.peers()) {
      if (peer.leaves()) lose(peer, kWasStopped);
    }
    membership_.clear_round();
    form_from_ = now + wait;
    join_until_ = form_from_ + options_.timing.join_timeout;
    state_.phase = Phase::kJoining;
    state_.reason.clear();
    if (membership_.find(options_.agent) == nullptr) return hand_over(now);
  } else {
    state_.phase = Phase::kOver;
    over_since_ = now;
  }
  publisher_.publish(state_);
}

void Leader::leave(const Departure& departure, SteadyTime now) {
  const bool leads = departure.agent == options_.agent;
  Peer* const peer = membership_.find(departure.agent);
  if (peer == nullptr) {  // the message of the agent itself has not been read yet
    is_gone_ = is_gone_ || (leads && !ended());
  } else if (ended() || !peer->lost.empty()) {
    lose(*peer, kWasStopped);
  } else if (state_.phase != Phase::kJoining && peer->in_round()) {
    leave_round(*peer, departure, now);
  } else {
    leave_between_rounds(*peer, departure, now);
  }
}

// The verdict of the round decides how the job continues.
void Leader::leave_round(Peer& peer, const Departure& departure, SteadyTime now) {
  if (!peer.report) {  // it has not started its workers
    peer.report = Report{
        .agent = peer.agent(), .round = state_.round, .outcome = Outcome::kStopped, .failure = {}};
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

// Ctrl-C at one launcher ends the job. Any other signal concerns only that launcher, unless it
// leads: then another agent leads, if enough are present and may continue without it.
void Leader::leave_between_rounds(Peer& peer, const Departure& departure, SteadyTime now) {
  const bool leads = peer.agent() == options_.agent;
  const bool decides = membership_.has_quorum(options_.last);
  lose(peer, kWasStopped);
  if (state_.phase != Phase::kJoining) return;  // it was not part of the round
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
    if (membership_.present() >= options_.terms.min_nodes) return hand_over(now);
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

// Hands the lead over, as the leader leaves. The present nodes count as a round that never runs:
// more than half of them may continue together (LastRound), and the first of them leads at once.
void Leader::hand_over(SteadyTime now) {
  ++state_.round;
  state_.nodes = 0;
  state_.candidates.clear();
  for (const Peer& peer : membership_.peers()) {
    if (!peer.lost.empty()) continue;
    store_.set("place/" + peer.agent(),
               to_line(Assignment{.round = state_.round, .rank = state_.nodes++, .refused = ""}));
    if (state_.candidates.size() < kCandidates) state_.candidates.push_back(peer.join.candidate);
  }
  if (state_.candidates.empty()) {  // no other agent is present
    is_gone_ = true;
    return publisher_.publish(state_);
  }
  const Candidate& successor = state_.candidates.front();
  store_.set("moved", to_line(successor));
  journal_.write("hand over", {{"to", successor.agent}, {"nodes", state_.nodes}});
  state_.handed_over = true;
  over_since_ = now;
  publisher_.publish(state_);
}

}  // namespace scaletrain::launcher
