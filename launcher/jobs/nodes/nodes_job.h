// A job on several nodes: one launcher on each, which agree through a store on when all workers
// start and stop, and on one verdict that all of them log and exit with.
#pragma once

#include "launcher/jobs/job.h"
#include "launcher/jobs/nodes/nodes_options.h"

namespace scaletrain::launcher {

// Runs this node's part of the job until the whole of it succeeds, is stopped or fails for good.
// The result is the exit status. Throws core::Error: core::UsageError where this node is refused,
// core::StoppedError where the other nodes are not found in time, or lost.
int run_job_on_nodes(const Job& job, const Placement& placement, const NodesOptions& options);

}  // namespace scaletrain::launcher
