// Options of a leader: the terms of the job, limits and callbacks into the job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/agents/membership.h"
#include "launcher/agents/records.h"
#include "launcher/flags/timing.h"
#include "launcher/workers/restarts.h"

namespace scaletrain::launcher {

struct LeaderOptions {
  JobTerms terms;
  std::string agent;  // name of the leader's own agent
  std::string host;
  AgentTiming timing;
  RestartLimits restarts;
  int restarts_used = 0;
  int generation = 1;
  LastRound last;  // set for a successor: more than half of its nodes must join
  std::function<bool(int nodes)> fits = [](int) { return true; };
  std::function<bool(const Failure&)> worth_restart = [](const Failure&) { return true; };
  std::function<int(const Failure&)> exit_status = [](const Failure&) { return 1; };
  // Returns the replicas that are lost with a node of a running round; empty: the round ends with
  // the node.
  std::function<std::vector<int>(int node)> lost_with = [](int) { return std::vector<int>(); };
  // True once the run has reached its end, whatever happened to its launchers.
  std::function<bool()> is_done = [] { return false; };

  // Returns the largest number of nodes, at most `most`, on which the job can run; 0: there is
  // none.
  int nodes_that_fit(int most) const;
};

}  // namespace scaletrain::launcher
