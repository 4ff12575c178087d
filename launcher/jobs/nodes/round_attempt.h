// Converts a round of several nodes to this node's attempt.
#pragma once

#include <string>

#include "launcher/agents/session.h"
#include "launcher/jobs/job.h"

namespace scaletrain::launcher {

// `view`: a round in which this node has a rank; `placement`: requested for the job; `found_at`:
// host on which the leader's store was found; `max_restarts`: of the job.
Attempt round_attempt(const Session::View& view, const Placement& placement,
                      const std::string& found_at, int max_restarts);

}  // namespace scaletrain::launcher
