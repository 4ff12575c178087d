// How a round of several nodes ended on this one, as it is reported to the leader.
#pragma once

#include <vector>

#include "launcher/agents/records.h"
#include "launcher/jobs/job.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {

// Report on `plans`, workers that ended as `end` says; `node`: this node's number in the round.
Report node_report(const Job& job, const GroupEnd& end, const std::vector<WorkerPlan>& plans,
                   int round, int node);

// Report of a node that could not start its workers.
Report node_report(const core::Error& error, int round, int node);

}  // namespace scaletrain::launcher
