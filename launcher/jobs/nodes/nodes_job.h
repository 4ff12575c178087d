// A multi-node job: one launcher on each node. They agree through a store on when all workers start
// and stop, and on one verdict that all of them log and exit with.
#pragma once

#include "launcher/jobs/job.h"
#include "launcher/jobs/nodes/nodes_options.h"

namespace scaletrain::launcher {

// Runs this node's part until the whole job succeeds, is stopped or fails permanently. Returns the
// exit status. Throws core::UsageError if this node is refused, core::StoppedError if the other
// nodes are not found in time or lost.
int run_job_on_nodes(const Job& job, const Placement& placement, const NodesOptions& options);

}  // namespace scaletrain::launcher
