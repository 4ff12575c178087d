// How patient the agents of a job are.
#pragma once

#include <chrono>

namespace scaletrain::launcher {

struct AgentTiming {
  std::chrono::milliseconds beat_every{1000};
  std::chrono::milliseconds lost_after{10'000};     // without a sign of life
  std::chrono::milliseconds join_timeout{600'000};  // for a round to be formed
  std::chrono::milliseconds last_call{30'000};      // for more than the least number of nodes
};

}  // namespace scaletrain::launcher
