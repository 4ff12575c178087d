// Leader: the agent that hosts the store decides for all which nodes take part, when a round starts
// and stops, and its verdict. docs/internals/launcher.md has the state machine.
//
// Call step() every few tens of milliseconds. It uses only the store and the given clock, so that
// tests run it in simulated time.
#pragma once

#include <chrono>
#include <string>

#include "launcher/agents/admission.h"
#include "launcher/agents/inbox.h"
#include "launcher/agents/journal.h"
#include "launcher/agents/key_store.h"
#include "launcher/agents/leader_options.h"
#include "launcher/agents/membership.h"
#include "launcher/agents/records.h"
#include "launcher/agents/round_verdict.h"
#include "launcher/agents/state_publisher.h"
#include "launcher/place/endpoint.h"
#include "launcher/workers/restarts.h"

namespace scaletrain::launcher {

class Leader {
 public:
  using Options = LeaderOptions;

  // Writes the job's identity into the store.
  Leader(Options options, KeyStore& store, Journal& journal, core::SteadyTime now);
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  void step(core::SteadyTime now);
  // Publishes the round, which is formed, with node 0's plan. All agents start their workers now,
  // which connect at `workers_store` (without a host: at the address where a node found the
  // leader's store).
  void publish(const Endpoint& workers_store, const std::string& plan);

  // Handles the departure of an agent whose launcher received a signal. If it is this launcher, it
  // must run until finished(): then the job is over, or another agent leads.
  void leave(const Departure& departure, core::SteadyTime now);

  const JobState& state() const { return state_; }
  // True if the job is over or another agent leads it.
  bool ended() const { return is_gone_ || state_.handed_over || state_.phase == Phase::kOver; }
  // True if ended() and all present agents have read the reason, or have had the time to.
  bool finished(core::SteadyTime now) const;

 private:
  static constexpr std::size_t kCandidates = 16;
  static constexpr const char* kWasStopped = "its launcher was stopped";

  void receive(const Message& message, core::SteadyTime now);
  void receive_join(const Join& join, core::SteadyTime now);
  void watch_beats(core::SteadyTime now);
  void lose(Peer& peer, const std::string& why);
  void leave_round(Peer& peer, const Departure& departure, core::SteadyTime now);
  void leave_between_rounds(Peer& peer, const Departure& departure, core::SteadyTime now);
  bool stops_round(const Peer& peer) const;
  void hand_over(core::SteadyTime now);
  void note_lost(LostReplica lost);
  bool tolerates_loss(Peer& peer);
  void try_to_form(core::SteadyTime now);
  bool nobody_is_missing() const;
  void form(int nodes, core::SteadyTime now);
  void watch_round(core::SteadyTime now);
  void stop_round(const std::string& reason, bool failed);
  void try_to_judge(core::SteadyTime now);
  void conclude(Verdict verdict, std::chrono::milliseconds wait, core::SteadyTime now);
  void time_out(core::SteadyTime now);

  Options options_;
  KeyStore& store_;
  Journal& journal_;
  Membership membership_;
  Restarts restarts_;
  JobState state_;
  Inbox inbox_;
  Admission admission_;
  RoundVerdict verdict_;
  StatePublisher publisher_;
  int arrivals_ = 0;
  bool is_gone_ = false;  // it has left without deciding how the job continues
  core::SteadyTime last_step_, next_beat_;
  core::SteadyTime form_from_, join_until_, enough_since_{};
  core::SteadyTime round_start_{}, over_since_{};
};

}  // namespace scaletrain::launcher
