// Report to the leader on how a round ended on this node.
#pragma once

#include <vector>

#include "launcher/agents/records.h"
#include "launcher/jobs/job.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {

// Returns the report on the workers `plans`, which ended with `end`; `node`: this node's number in
// the round.
Report node_report(const Job& job, const GroupEnd& end, const std::vector<WorkerPlan>& plans,
                   int round, int node);

// Returns the report of a node that could not start its workers.
Report node_report(const core::Error& error, int round, int node);

}  // namespace scaletrain::launcher
