#include "launcher/agents/leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launcher/agents/lost_replicas.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

using core::SteadyTime;
using std::chrono::milliseconds;

// An agent that died between announcing a message and writing it holds up the others for so long.
constexpr milliseconds kMessagePatience{2000};
// How long the store outlives the verdict for those who have not read it.
constexpr milliseconds kFarewell{5000};
// A holder that shows so many more signs of life keeps its rank.
constexpr std::int64_t kBeatsToKeep = 2;
// The leader shows all what is awaited when it takes so long.
constexpr milliseconds kReportAfter{5000};

double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

std::string named(const Peer& peer) {
  return peer.in_round() ? fmt::format("node {} (host {})", peer.rank, peer.join.candidate.host)
                         : fmt::format("host {}", peer.join.candidate.host);
}

}  // namespace

Leader::Leader(Options options, KeyStore& store, Journal& journal, SteadyTime now)
    : options_(std::move(options)),
      store_(store),
      journal_(journal),
      roster_(options_.terms),
      restarts_(options_.restarts, options_.restarts_used),
      last_step_(now),
      next_beat_(now),
      next_pulse_(now),
      form_from_(now),
      join_until_(now + options_.timing.join_timeout) {
  board_.generation = options_.generation;
  board_.restart = options_.restarts_used;
  board_.round = options_.last.round;
  show();
  give_pulse(now);
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
    for (Peer& peer : roster_.peers()) peer.alive = now;
  }
  last_step_ = now;
  read_inbox(now);
  watch_beats(now);
  settle_claims(now);
  switch (board_.phase) {
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
  give_pulse(now);
}

void Leader::publish(const Endpoint& workers_store, const std::string& plan) {
  if (board_.phase != Phase::kFormed) return;
  board_.store_host = workers_store.host;
  board_.store_port = workers_store.port;
  board_.plan = plan;
  board_.phase = Phase::kRunning;
  journal_.write("run", {{"round", board_.round}, {"restart", board_.restart}});
  show();
}

bool Leader::finished(SteadyTime now) const {
  if (!ended() || is_gone_) return is_gone_;
  const bool all_know =
      std::all_of(roster_.peers().begin(), roster_.peers().end(), [&](const Peer& peer) {
        return peer.heard || !peer.lost.empty() || peer.agent() == options_.agent;
      });
  return all_know || now - over_since_ >= kFarewell;
}

void Leader::read_inbox(SteadyTime now) {
  const std::int64_t written = store_.add("inbox", 0);
  while (inbox_read_ < written) {
    const std::optional<std::string> text = store_.get(fmt::format("inbox/{}", inbox_read_ + 1));
    if (!text) {
      if (message_due_ == SteadyTime{}) message_due_ = now + kMessagePatience;
      if (now < message_due_) return;
    }
    message_due_ = {};
    ++inbox_read_;
    if (!text) continue;
    try {
      receive(parse<Message>(*text), now);
    } catch (const core::InternalError& error) {
      core::warn("{}", error.what());  // a stranger's
    }
  }
}

void Leader::receive(const Message& message, SteadyTime now) {
  if (message.join) receive_join(*message.join, now);
  if (Peer* const peer = roster_.find(message.heard)) peer->heard = true;
  if (message.leaves) leave(*message.leaves, now);
  if (message.lost && message.lost->round == board_.round) note_lost(*message.lost);
  if (!message.report) return;
  Peer* const peer = roster_.find(message.report->agent);
  if (peer == nullptr || message.report->round != board_.round || peer->report) return;
  peer->report = *message.report;
  peer->arrival = ++arrivals_;
  peer->reported = now;
  journal_.write("report", {{"node", peer->rank},
                            {"round", board_.round},
                            {"outcome", static_cast<int>(message.report->outcome)}});
}

void Leader::receive_join(const Join& join, SteadyTime now) {
  const std::string why = roster_.refusal(join);
  if (!why.empty()) return refuse(join, why);
  if (ended()) return;  // it reads how the job ended, or who leads it
  if (Peer* const before = roster_.find(join.candidate.agent)) {
    lose(*before, "its connection to the store was lost");
    before->join.candidate.agent += " before";
  }
  if (options_.terms.fixed_ranks) {
    if (const Peer* const holder = roster_.holder_of(join.node)) {
      claims_.push_back({.join = join, .beats_then = holder->beats});
      return;
    }
  }
  roster_.add(join, now);
  journal_.write("join", {{"who", join.candidate.agent}, {"node", join.node}});
}

// Whoever holds a claimed rank shows that it lives, or is lost.
void Leader::settle_claims(SteadyTime now) {
  for (auto claim = claims_.begin(); claim != claims_.end();) {
    const Peer* const holder = roster_.holder_of(claim->join.node);
    if (holder != nullptr && holder->beats < claim->beats_then + kBeatsToKeep) {
      ++claim;
      continue;
    }
    const Join join = claim->join;
    claim = claims_.erase(claim);
    if (holder != nullptr) {
      refuse(join, fmt::format("node {} is there already: host {}", join.node,
                               holder->join.candidate.host));
    } else {
      roster_.add(join, now);
      journal_.write("join", {{"who", join.candidate.agent}, {"node", join.node}});
    }
  }
}

void Leader::refuse(const Join& join, const std::string& why) {
  journal_.write("refuse", {{"who", join.candidate.agent}, {"why", why}});
  store_.set("place/" + join.candidate.agent,
             to_line(Place{.round = 0, .rank = -1, .refused = why}));
  show();  // so that it looks
}

void Leader::watch_beats(SteadyTime now) {
  if (now < next_beat_) return;
  next_beat_ = now + options_.timing.beat_every;
  std::vector<std::string> keys;
  std::vector<Peer*> watched;
  for (Peer& peer : roster_.peers()) {
    if (!peer.lost.empty()) continue;
    watched.push_back(&peer);
    keys.push_back("beat/" + peer.agent());
  }
  const std::vector<std::string> beats = store_.get_all(keys);
  for (std::size_t i = 0; i < watched.size(); ++i) {
    Peer& peer = *watched[i];
    if (beats[i] != peer.beat) {
      peer.beat = beats[i];
      peer.silence = parse<AgentBeat>(peer.beat).silence;
      ++peer.beats;
      peer.alive = now;
    } else if (now - peer.alive >= options_.timing.lost_after) {
      lose(peer, fmt::format("nothing was heard of its launcher for {:g} s",
                             seconds(options_.timing.lost_after)));
      store_.set("place/" + peer.agent(),
                 to_line(Place{.round = 0, .rank = -1, .refused = peer.lost, .given_up = true}));
    }
  }
}

void Leader::lose(Peer& peer, const std::string& why) {
  if (!peer.lost.empty()) return;
  peer.lost = why;
  journal_.write("lose", {{"who", peer.agent()}, {"node", peer.rank}, {"why", why}});
}

void Leader::note_lost(LostReplica lost) {
  const int number = lost.number;
  LostReplicas known(board_.lost);
  if (!known.note(std::move(lost))) return;
  board_.lost = known.all();
  journal_.write("lose a replica", {{"round", board_.round}, {"replica", number}});
  show();
}

// Notes the replicas lost with this lost node; true if the round goes on without them.
bool Leader::outlives(Peer& peer) {
  if (peer.is_outlived || board_.phase != Phase::kRunning) return peer.is_outlived;
  Failure failure{.host = peer.join.candidate.host, .node = peer.rank, .rank = -1};
  failure.status.code = static_cast<int>(core::ExitCode::kTemporary);
  failure.cause = peer.lost;
  for (const int number : options_.lost_with(peer.rank)) {
    note_lost({.round = board_.round, .number = number, .failure = failure});
    peer.is_outlived = true;
  }
  return peer.is_outlived;
}

// The largest number of nodes, `most` at most, on which the job can run; 0: there is none.
int Leader::nodes_that_fit(int most) const {
  for (int nodes = std::min(most, options_.terms.max_nodes); nodes >= options_.terms.min_nodes;
       --nodes) {
    if (options_.fits(nodes)) return nodes;
  }
  return 0;
}

// How many of the last round have come to this leader, who did not lead it.
int Leader::came_back() const {
  return static_cast<int>(
      std::count_if(roster_.peers().begin(), roster_.peers().end(), [&](const Peer& peer) {
        return peer.lost.empty() && peer.join.last.same_round(options_.last);
      }));
}

// After a change of the leader: more than half of the last round must be here, so that no other
// part of it can go on as well. The store's node, which would decide a tie, is the one that is
// gone.
bool Leader::has_quorum() const {
  return options_.last.nodes == 0 || 2 * came_back() > options_.last.nodes;
}

// True if all remaining nodes of the last round are present; the last call is for others.
bool Leader::nobody_is_missing() const {
  if (board_.nodes > 0) return true;  // it led that round, and knows who was lost
  const LastRound& last = options_.last;
  return last.nodes > 0 && came_back() >= last.nodes - (last.handed_over ? 0 : 1);
}

void Leader::try_to_form(SteadyTime now) {
  if (ended()) return;
  if (now < form_from_ || !claims_.empty()) return;  // whose rank it is, is soon clear
  roster_.clear_round();
  const Peer* const own = roster_.find(options_.agent);
  const int nodes = own == nullptr || !has_quorum() ? 0 : nodes_that_fit(roster_.present());
  if (nodes == 0) {
    enough_since_ = {};
    if (now >= join_until_) return conclude(time_out(), milliseconds(0), now);
  } else {
    if (enough_since_ == SteadyTime{}) enough_since_ = now;
    const bool all = nodes == options_.terms.max_nodes || nobody_is_missing();
    if (all || now - enough_since_ >= options_.timing.last_call) return form(nodes, now);
  }
  if (board_.reason.empty() && now - form_from_ >= kReportAfter) {
    board_.reason = awaited(nodes);
    show();
  }
}

void Leader::form(int nodes, SteadyTime now) {
  ++board_.round;
  board_.nodes = nodes;
  board_.phase = Phase::kFormed;
  board_.reason.clear();
  board_.failed = false;
  board_.plan.clear();
  board_.candidates.clear();
  board_.replicas.clear();
  board_.lost.clear();
  options_.last = {};
  arrivals_ = 0;
  enough_since_ = {};
  round_start_ = now;
  roster_.rank(nodes, options_.agent);
  board_.one_host = roster_.on_one_host();
  for (const Peer* const peer : roster_.members()) {
    store_.set("place/" + peer->agent(),
               to_line(Place{.round = board_.round, .rank = peer->rank, .refused = ""}));
    if (board_.candidates.size() < kCandidates) {
      board_.candidates.push_back(peer->join.candidate);
    }
    if (!peer->join.replicas.empty()) board_.replicas.push_back(peer->join.replicas);
  }
  journal_.write("round", {{"round", board_.round}, {"nodes", nodes}});
  show();
}

void Leader::watch_round(SteadyTime now) {
  bool all_ended = true;
  const Peer* waiting = nullptr;
  for (Peer& peer : roster_.peers()) {
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
    // One that is lost after its workers succeeded has done its part.
    if (!peer.lost.empty() && !peer.report && !outlives(peer)) {
      return stop_round(fmt::format("{}: {}", named(peer), peer.lost), true);
    }
  }
  if (all_ended) return stop_round("all workers are done", false);
  if (waiting != nullptr && board_.phase == Phase::kRunning &&
      now - waiting->joined >= options_.timing.last_call &&
      nodes_that_fit(roster_.present()) > board_.nodes) {
    stop_round(fmt::format("{} joins", named(*waiting)), false);
  }
}

void Leader::stop_round(const std::string& reason, bool failed) {
  board_.phase = Phase::kStopping;
  board_.reason = reason;
  board_.failed = failed;
  journal_.write("stop", {{"round", board_.round}, {"reason", reason}});
  show();
}

void Leader::show() {
  store_.set("board", to_line(board_));
  ++version_;
  shown_ = false;
}

// Shortest silence of the nodes that have not ended; 0 if there is none.
milliseconds Leader::job_silence() const {
  std::optional<milliseconds> shortest;
  for (const Peer& peer : roster_.peers()) {
    if (!peer.in_round() || peer.ended()) continue;
    shortest = std::min(peer.silence, shortest.value_or(peer.silence));
  }
  return shortest.value_or(milliseconds(0));
}

void Leader::give_pulse(SteadyTime now) {
  if (shown_ && now < next_pulse_) return;
  next_pulse_ = now + options_.timing.beat_every;
  store_.set("pulse",
             to_line(Pulse{.count = ++pulse_, .version = version_, .silence = job_silence()}));
  shown_ = true;
}

}  // namespace scaletrain::launcher
