// Steady time for durations and waits, Unix time for records.
#pragma once

#include <chrono>

namespace scaletrain::core {

using SteadyTime = std::chrono::steady_clock::time_point;

inline SteadyTime now() { return std::chrono::steady_clock::now(); }

inline double seconds_since(SteadyTime start) {
  return std::chrono::duration<double>(now() - start).count();
}

// Seconds since 1970 with microseconds, for records a person reads; never for a wait.
inline double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace scaletrain::core
