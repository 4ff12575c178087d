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
  std::string nnodes;  // as given; must be the same on all nodes
  std::string token;   // SCALETRAIN_JOB_TOKEN: excludes nodes of other jobs
};

}  // namespace scaletrain::launcher
