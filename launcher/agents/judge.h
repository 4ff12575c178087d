// The verdict on one round of several nodes: one cause for the whole job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/agents/records.h"

namespace scaletrain::launcher {

// How a round ended on one node: it reported, or it was lost.
struct NodeEnd {
  int node = 0;
  std::string host;
  std::string lost;         // why the node counts as lost; "": it has reported
  bool lost_first = false;  // its last heartbeat came before any failure was reported
  Report report;
};

struct Judgement {
  enum class Kind {
    kSucceeded,  // on every node
    kFailed,     // a worker failed, or a node was lost: `failure`
    kStopped,    // a node stops by itself for `reason` and would exit with `status`
    kRegroup,    // no failure: the leader requests another round
  };
  Kind kind = Kind::kSucceeded;
  std::optional<Failure> failure;
  int status = 0;
  int signal = 0;
  std::string reason{};
};

// `ends` in the order in which the store received them, lost nodes last. The cause is the node
// that was lost before any failure was reported; else the first failure that did not only follow
// another (launcher/workers/failure.h); else a lost node; else a signal; else the first of the
// followers.
Judgement judge(const std::vector<NodeEnd>& ends);

}  // namespace scaletrain::launcher
