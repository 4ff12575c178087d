// Member: an agent's side of the rendezvous. It joins, sends heartbeats, follows the job state and
// reports.
//
// Call step() every few tens of milliseconds. Like Leader, it uses only the store and the given
// clock.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "launcher/agents/journal.h"
#include "launcher/agents/key_store.h"
#include "launcher/agents/leader.h"
#include "launcher/agents/records.h"

namespace scaletrain::launcher {

class Member {
 public:
  // Joins the job. Throws StoreLost, also if the store does not identify its job within `patience`,
  // and core::UsageError if it belongs to another job or the token differs.
  Member(Join join, const JobTerms& terms, AgentTiming timing, KeyStore& store, Journal& journal,
         core::SteadyTime now);

  // Throws StoreLost if the leader has not updated its heartbeat for too long, core::UsageError
  // with the reason of a refusal, and core::StoppedError if the leader considers this agent lost.
  void step(core::SteadyTime now);
  void report(const Report& report);
  void report_lost(const LostReplica& lost);
  void leave(const Departure& departure);

  // Time since the last heartbeat of a worker here; the next heartbeat reports it to the leader.
  void report_silence(std::chrono::milliseconds silence) { silence_ = silence; }
  // Time since the last heartbeat of any worker of the round, as last reported by the leader.
  std::chrono::milliseconds job_silence() const { return job_silence_; }

  const JobState& state() const { return state_; }
  // This node's number in the job state's round; nullopt: it has none (yet).
  std::optional<int> rank() const;
  // The verdicts that came since this agent joined, the oldest first; taken by the caller.
  std::deque<Verdict>& verdicts() { return verdicts_; }
  // Record of the current round, which this agent sends to the next leader.
  LastRound last_round() const;
  // The leader's last heartbeat.
  const std::string& leader_heartbeat() const { return leader_heartbeat_; }

 private:
  void say(const Message& message);
  void read_state();

  Join join_;
  AgentTiming timing_;
  KeyStore& store_;
  Journal& journal_;
  JobState state_;
  Assignment assignment_;
  std::deque<Verdict> verdicts_;
  int verdicts_read_ = -1;  // -1: not known how many there were before
  std::int64_t beat_ = 0;
  std::chrono::milliseconds silence_{0}, job_silence_{0};
  std::string leader_heartbeat_;
  std::int64_t version_ = 0;
  core::SteadyTime next_beat_, leader_heartbeat_seen_, last_step_;
};

// Returns the job that the store belongs to; nullopt if that is not written yet. Throws
// core::UsageError if it is not the job `terms`.
std::optional<Hello> read_hello(KeyStore& store, const JobTerms& terms);

}  // namespace scaletrain::launcher
