// How patient a job is: with nodes that are silent, and with failures.
#pragma once

#include <chrono>

namespace scaletrain::launcher {

struct RestartLimits {
  int most = 0;      // in all
  int per_hour = 0;  // in any hour; 0: no limit
  // The wait before the second of several quick failures; it doubles with each, up to a minute. The
  // first restart is at once, and so is one after an attempt that lasted a minute.
  std::chrono::milliseconds delay{1000};
};

// Timing of the agents of a multi-node job.
struct AgentTiming {
  std::chrono::milliseconds beat_every{1000};
  std::chrono::milliseconds lost_after{10'000};     // without a sign of life
  std::chrono::milliseconds join_timeout{600'000};  // for a round to be formed
  std::chrono::milliseconds last_call{30'000};      // for more than the least number of nodes
};

}  // namespace scaletrain::launcher
