// Members of a leader: the agents that have joined, if they are alive, and how their round ended.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/agents/records.h"
#include "lib/core/clock.h"

namespace scaletrain::launcher {

struct Peer {
  Join join;
  std::string beat;                      // its last heartbeat
  std::int64_t beats = 0;                // how many were seen
  core::SteadyTime alive{};              // when the last was seen
  std::chrono::milliseconds silence{0};  // time since a heartbeat of its workers at that moment
  core::SteadyTime joined{};
  int rank = -1;              // rank of its node in the current round; -1: waiting
  std::string lost;           // why it is gone; "": it is there
  bool is_tolerated = false;  // it is lost, and its round continues
  std::optional<Report> report;
  int arrival = 0;  // position of its report among the round's
  core::SteadyTime reported{};
  bool heard = false;

  const std::string& agent() const { return join.candidate.agent; }
  bool in_round() const { return rank >= 0; }
  bool ended() const { return report.has_value() || !lost.empty(); }
  bool leaves() const { return report && !report->reason.empty(); }
};

// Terms that every agent of a job must have in common.
struct JobTerms {
  std::string name, token;  // --rdzv-id and SCALETRAIN_JOB_TOKEN
  std::string nnodes;       // as given
  int min_nodes = 1, max_nodes = 1;
  int nproc = 1;
  bool fixed_ranks = false;  // --node-rank: every agent brings its rank
  recipe::AgreedValues recipe{};

  bool elastic() const { return min_nodes < max_nodes; }
};

class Membership {
 public:
  explicit Membership(JobTerms terms) : terms_(std::move(terms)) {}

  // Returns why `join` cannot be part of the job, "" if it can: another job, token, number of nodes
  // or recipe, or a rank that is taken.
  std::string refusal(const Join& join) const;
  void add(const Join& join, core::SteadyTime now);
  Peer* find(const std::string& agent);
  // The agent of a fixed rank, which may be a dead one's that is started again.
  Peer* holder_of(int node);

  std::vector<Peer>& peers() { return peers_; }
  const std::vector<Peer>& peers() const { return peers_; }
  // Number of live agents that could be part of the next round.
  int present() const;
  // Removes agents that have left, and resets the membership of the finished round.
  void clear_round();
  // Assigns ranks to the first `nodes` present agents: their fixed ones, or 0 for `leader` and the
  // next ones in the order of arrival.
  void rank(int nodes, const std::string& leader);
  // Returns the members of the current round, sorted by rank.
  std::vector<const Peer*> members() const;
  // True if the members are launchers of one host.
  bool on_one_host() const;
  // Shortest time since a heartbeat of a worker, over the members that have not ended; 0: none.
  std::chrono::milliseconds silence() const;
  // Number of live agents that were part of the round `last`.
  int came_back(const LastRound& last) const;
  // After a change of leader: true if more than half of the round `last` is present, so that no
  // other part of it can continue too. The store's node, which would decide a tie, is lost.
  bool has_quorum(const LastRound& last) const;
  // Missing nodes of a static rendezvous: "node 1, node 3".
  std::string missing_nodes() const;

 private:
  JobTerms terms_;
  std::vector<Peer> peers_;  // in the order in which they came
};

}  // namespace scaletrain::launcher
