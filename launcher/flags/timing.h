// Timeouts of a job for silent nodes, and limits on restarts.
#pragma once

#include <chrono>

namespace scaletrain::launcher {

struct RestartLimits {
  int most = 0;      // total number
  int per_hour = 0;  // number within any hour; 0: no limit
  // Delay before the second restart of several quick failures; doubles with each, up to a minute.
  // There is not a delay before the first restart, or after an attempt of at least a minute.
  std::chrono::milliseconds delay{1000};
};

// Timing of the agents of a multi-node job.
struct AgentTiming {
  std::chrono::milliseconds beat_every{1000};
  std::chrono::milliseconds lost_after{10'000};     // silence after which a node counts as lost
  std::chrono::milliseconds join_timeout{600'000};  // time limit for forming a round
  std::chrono::milliseconds last_call{
      30'000};  // extra wait for more than the minimum number of nodes
};

}  // namespace scaletrain::launcher
