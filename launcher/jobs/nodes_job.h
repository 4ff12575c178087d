// A job on several nodes: one launcher on each, which agree through a store on when all workers
// start and stop, and on one verdict that all of them log and exit with.
#pragma once

#include <chrono>
#include <string>

#include "launcher/flags/timing.h"
#include "launcher/jobs/job.h"

namespace scaletrain::launcher {

struct NodesOptions {
  AgentTiming timing;
  RestartLimits restarts;
  std::chrono::milliseconds grace{0};
  std::string nnodes;  // as given: all nodes must give the same
  std::string token;   // SCALETRAIN_JOB_TOKEN: keeps others' nodes out
};

// Runs this node's part of the job until the whole of it succeeds, is stopped or fails for good.
// The result is the exit status. Throws core::Error: core::UsageError where this node is refused,
// core::StoppedError where the other nodes are not found in time, or lost.
int run_job_on_nodes(const Job& job, const Placement& placement, const NodesOptions& options);

}  // namespace scaletrain::launcher
