// Records that the launchers of a job keep in their key-value store, as values and as JSON.
//
// Keys: `hello` (the job that the store belongs to), `inbox` (a counter) and `inbox/N` (messages to
// the leader, in the order of their arrival), `beat/AGENT` (an agent's heartbeat), `place/AGENT`
// (its rank, or a refusal), `leader_heartbeat`, `state` (the state of the job), `verdict/N`. Only
// the leader writes hello, place, leader_heartbeat, state and verdict. The job's leader writes
// `moved` into a store that another launcher hosts at an earlier address: the address of the job's
// own store.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/workers/failure.h"
#include "lib/recipe/agreed.h"

namespace scaletrain::launcher {

// Proof of belonging to a job. A store's and an agent's proof differ, so that neither can be
// replayed as the other.
std::string proof_of(const std::string& role, const std::string& job, const std::string& token);

struct Hello {
  std::string job, proof;
  std::string agent, host;  // the leader's
  int generation = 0;
};

// The last round that an agent was part of; nodes 0: none.
struct LastRound {
  int generation = 0;
  int round = 0;
  int rank = 0;
  int nodes = 0;
  bool handed_over = false;  // its leader has left; `nodes` and `rank` count the remaining nodes

  bool same_round(const LastRound& other) const {
    return generation == other.generation && round == other.round && nodes == other.nodes;
  }
};

// Endpoint at which an agent would host the store.
struct Candidate {
  std::string agent, host;
  std::vector<std::string> addresses;
  int port = 0;
};

struct Join {
  Candidate candidate;
  std::string proof, nnodes;  // --nnodes, which must be equal on all nodes
  int node = -1;              // the rank that it must have; -1: any
  int nproc = 1;
  std::string network{};   // launchers with the same one reach each other by loopback
  std::string replicas{};  // address of its peer checkpoints (lib/replica/address.h); "": none
  LastRound last;
  recipe::AgreedValues recipe{};  // empty for a program
};

enum class Outcome { kSucceeded, kFailed, kStopped };

// How a round ended on one node.
struct Report {
  std::string agent;
  int round = 0;
  Outcome outcome = Outcome::kSucceeded;
  int signal = 0;        // kStopped: signal that its launcher received; 0: none
  int status = 0;        // kStopped: exit code of its launcher as a job of one node
  std::string reason{};  // kStopped: reason if it stopped by itself; "": the leader requested it
  std::optional<Failure> failure;  // kFailed
};

// A lost replica without which the job continues (launcher/jobs/replicas.h).
struct LostReplica {
  int round = 0;
  int number = 0;
  Failure failure;  // rank -1: it was lost with the node
};

// An agent that leaves because its launcher received a signal.
struct Departure {
  std::string agent;
  int signal = 0;  // 0: its launcher stops by itself
  int status = 0;  // exit status of its launcher if it were the only one
};

struct Message {
  std::string heard{};  // the agent that has read the last verdict, or that its leader leaves
  std::optional<Departure> leaves{};
  std::optional<Join> join{};
  std::optional<Report> report{};
  std::optional<LostReplica> lost{};
};

// Heartbeats of an agent and of the leader: numbers in a line, since all are read every second.
// `silence`: how long no worker has beaten, of the agent's node and of all nodes of the round.
struct AgentHeartbeat {
  std::int64_t count = 0;
  std::chrono::milliseconds silence{0};
};
struct LeaderHeartbeat {
  std::int64_t count = 0;
  std::int64_t version = 0;  // version of the job state
  std::chrono::milliseconds silence{0};
};

enum class Phase { kJoining, kFormed, kRunning, kStopping, kOver };

struct JobState {
  Phase phase = Phase::kJoining;
  int generation = 0;
  int round = 0;  // number of the last formed round; 0: none yet
  int nodes = 0;
  int verdicts = 0;  // how many there are
  int restart = 0;
  std::string store_host;  // "": the address at which a node found the leader's store
  int store_port = 0;      // port of the workers' store, from kRunning on
  std::string plan;        // launcher/jobs/job.h, from kRunning on
  bool one_host = false;   // all nodes of the round are launchers of one host
  // From kStopping on: the reason; in kJoining: what the round is waiting for.
  std::string reason{};
  bool failed = false;                  // kStopping: workers of a node have failed or are lost
  bool handed_over = false;             // the leader leaves; the first candidate leads next
  std::vector<Candidate> candidates;    // the first agents of the round, by rank
  std::vector<std::string> replicas{};  // addresses of peer checkpoints, by rank; {}: unused
  std::vector<LostReplica> lost{};      // in this round
};

struct Assignment {
  int round = 0;
  int rank = 0;
  std::string refused;    // reason of a refusal; "": accepted
  bool given_up = false;  // refused only because it was silent for too long
};

struct Verdict {
  int round = 0;
  bool again = false;
  int code = 0;
  std::string text;  // logged by every node
  std::optional<Failure> failure;
};

// One record as one line. For Hello, Candidate, Message, AgentHeartbeat, LeaderHeartbeat, JobState,
// Assignment, Verdict.
template <class Record>
std::string to_line(const Record& record);

// Throws core::InternalError for invalid records, such as those of another version of this program.
template <class Record>
Record parse(const std::string& line);

}  // namespace scaletrain::launcher
