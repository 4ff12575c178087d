// What the launchers of a job write into their store, as values and as JSON.
//
// Keys: `hello` (whose store this is), `inbox` (a counter) and `inbox/N` (messages to the leader,
// in the order of their arrival), `beat/AGENT` (a sign of life), `place/AGENT` (its rank, or a
// refusal), `pulse` (the leader's sign of life and the board's version), `board` (where the job
// stands), `verdict/N`. The leader alone writes hello, place, pulse, board and verdict. `moved`
// (where the leader of the job is) is left by that leader in a store that is not its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/failure.h"

namespace scaletrain::launcher {

// What tells one job from another. A store's and an agent's proof differ, so that neither can be
// repeated as the other.
std::string proof_of(const std::string& role, const std::string& job, const std::string& token);

struct Hello {
  std::string job, proof;
  std::string agent, host;  // of the leader
  int generation = 0;
};

// The round that an agent was part of before; nodes 0: none.
struct LastRound {
  int generation = 0;
  int round = 0;
  int rank = 0;
  int nodes = 0;

  bool same_round(const LastRound& other) const {
    return generation == other.generation && round == other.round && nodes == other.nodes;
  }
};

// Where an agent would host the store.
struct Candidate {
  std::string agent, host;
  std::vector<std::string> addresses;
  int port = 0;
};

struct Join {
  Candidate candidate;
  std::string proof, nnodes;  // --nnodes as all must give it
  int node = -1;              // the rank that it must have; -1: any
  int nproc = 1;
  LastRound last;
};

enum class Outcome { kSucceeded, kFailed, kStopped };

// How a round ended on one node.
struct Report {
  std::string agent;
  int round = 0;
  Outcome outcome = Outcome::kSucceeded;
  int signal = 0;                  // kStopped: what its launcher heard; 0: nothing
  int status = 0;                  // kStopped: what its launcher would exit with alone
  std::string reason{};            // kStopped: why it stops by itself; "": the leader asked for it
  std::optional<Failure> failure;  // kFailed
};

struct Message {
  std::string leaves;  // the agent that leaves
  std::string heard;   // the agent that has read the last verdict
  std::optional<Join> join;
  std::optional<Report> report;
};

enum class Phase { kJoining, kFormed, kRunning, kStopping, kOver };

struct Board {
  Phase phase = Phase::kJoining;
  int generation = 0;
  int round = 0;  // of the round that was formed last; 0: none yet
  int nodes = 0;
  int verdicts = 0;  // how many there are
  int restart = 0;
  std::string store_host;             // "": where the leader's store was found
  int store_port = 0;                 // of the workers' store, from kRunning on
  std::string plan;                   // launcher/job.h, from kRunning on
  std::string reason{};               // from kStopping on
  std::vector<Candidate> candidates;  // the first agents of the round, by rank
};

struct Place {
  int round = 0;
  int rank = 0;
  std::string refused;    // why the agent has no part in the job; "": it has
  bool given_up = false;  // refused only because it was silent for too long
};

struct Verdict {
  int round = 0;
  bool again = false;
  int code = 0;
  std::string text;  // what every node tells
  std::optional<Failure> failure;
};

// One record as one line. `parse` throws core::InternalError for what is no such record: another
// version of this program, or a stranger.
std::string to_line(const Hello& record);
std::string to_line(const Candidate& record);
std::string to_line(const Message& record);
std::string to_line(const Board& record);
std::string to_line(const Place& record);
std::string to_line(const Verdict& record);
template <class Record>
Record parse(const std::string& line);
template <>
Hello parse<Hello>(const std::string& line);
template <>
Candidate parse<Candidate>(const std::string& line);
template <>
Message parse<Message>(const std::string& line);
template <>
Board parse<Board>(const std::string& line);
template <>
Place parse<Place>(const std::string& line);
template <>
Verdict parse<Verdict>(const std::string& line);

}  // namespace scaletrain::launcher
