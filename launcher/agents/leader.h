// The agent that hosts the store decides for all: who takes part, when a round starts and stops,
// and what the verdict on it is. docs/internals/launcher.md has the state machine.
//
// step() is to be called every few tens of milliseconds; it only talks to the store and to the
// clock that it is given, so that tests run it in simulated time.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "launcher/agents/journal.h"
#include "launcher/agents/judge.h"
#include "launcher/agents/key_store.h"
#include "launcher/agents/records.h"
#include "launcher/agents/roster.h"
#include "launcher/flags/timing.h"
#include "launcher/place/endpoint.h"
#include "launcher/workers/restarts.h"

namespace scaletrain::launcher {

class Leader {
 public:
  struct Options {
    JobTerms terms;
    std::string agent;  // its own
    std::string host;
    AgentTiming timing;
    RestartLimits restarts;
    int restarts_used = 0;
    int generation = 1;
    LastRound last;  // set for a successor: more than half of its nodes must join
    std::function<bool(int nodes)> fits = [](int) { return true; };
    std::function<bool(const Failure&)> worth_restart = [](const Failure&) { return true; };
    std::function<int(const Failure&)> exit_status = [](const Failure&) { return 1; };
    // The replicas that are lost with a node while its round runs; none: the round ends with it.
    std::function<std::vector<int>(int node)> lost_with = [](int) { return std::vector<int>(); };
    // True once the run of the round has reached its end, whatever became of its launchers.
    std::function<bool()> is_done = [] { return false; };
  };

  // Says in the store whose it is.
  Leader(Options options, KeyStore& store, Journal& journal, core::SteadyTime now);

  void step(core::SteadyTime now);
  // The round is formed and node 0 knows how it shall run: from now on all start their workers,
  // which meet at `workers_store` (without a host: at the one where a node found the leader's
  // store).
  void publish(const Endpoint& workers_store, const std::string& plan);

  // Handles the departure of an agent whose launcher received a signal. If it is this launcher, it
  // must run until finished(): then the job is over, or another agent leads.
  void leave(const Departure& departure, core::SteadyTime now);

  const Board& board() const { return board_; }
  // True if the job is over or another agent leads it.
  bool ended() const { return is_gone_ || board_.handed_over || board_.phase == Phase::kOver; }
  // True if ended() and all present agents have read the reason, or have had the time to.
  bool finished(core::SteadyTime now) const;

 private:
  static constexpr std::size_t kCandidates = 16;
  static constexpr const char* kTooFew = "\n  too few of the nodes are left to go on";
  static constexpr const char* kWasStopped = "its launcher was stopped";

  void read_inbox(core::SteadyTime now);
  void receive(const Message& message, core::SteadyTime now);
  void receive_join(const Join& join, core::SteadyTime now);
  void settle_claims(core::SteadyTime now);
  void refuse(const Join& join, const std::string& why);
  void watch_beats(core::SteadyTime now);
  void lose(Peer& peer, const std::string& why);
  void leave_round(Peer& peer, const Departure& departure, core::SteadyTime now);
  void leave_between_rounds(Peer& peer, const Departure& departure, core::SteadyTime now);
  bool stops_round(const Peer& peer) const;
  void hand_over(core::SteadyTime now);
  void note_lost(LostReplica lost);
  bool outlives(Peer& peer);
  void try_to_form(core::SteadyTime now);
  int nodes_that_fit(int most) const;
  int came_back() const;
  bool has_quorum() const;
  bool nobody_is_missing() const;
  void form(int nodes, core::SteadyTime now);
  void watch_round(core::SteadyTime now);
  void stop_round(const std::string& reason, bool failed);
  void try_to_judge(core::SteadyTime now);
  void conclude(Verdict verdict, std::chrono::milliseconds wait, core::SteadyTime now);
  Verdict after_failure(const Failure& failure, std::chrono::milliseconds& wait,
                        core::SteadyTime now);
  Verdict time_out() const;
  std::string awaited(int nodes) const;
  std::string missing_text() const;
  bool may_go_on() const;
  bool is_run_done(const Judgement& judgement) const;
  void show();
  std::chrono::milliseconds job_silence() const;
  void give_pulse(core::SteadyTime now);

  struct Claim {  // on a fixed rank that another agent holds, which may be dead
    Join join;
    std::int64_t beats_then = 0;
  };

  Options options_;
  KeyStore& store_;
  Journal& journal_;
  Roster roster_;
  Restarts restarts_;
  Board board_;
  std::vector<Claim> claims_;
  std::int64_t inbox_read_ = 0, version_ = 0, pulse_ = 0;
  int arrivals_ = 0;
  bool shown_ = false;
  bool is_gone_ = false;  // it has left without a say in how the job goes on
  core::SteadyTime last_step_, next_beat_, next_pulse_;
  core::SteadyTime message_due_{};  // when the next message, announced but not there, is given up
  core::SteadyTime form_from_, join_until_, enough_since_{};
  core::SteadyTime round_start_{}, over_since_{};
};

}  // namespace scaletrain::launcher
