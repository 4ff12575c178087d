// Options of a job on several nodes.
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

}  // namespace scaletrain::launcher
