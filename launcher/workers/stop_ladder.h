// State of stopping one attempt's workers: SIGTERM sent, SIGKILL sent, given up.
//
// Has no clock and no processes: the caller passes the time and carries out the steps.
#pragma once

#include <chrono>
#include <optional>

#include "lib/core/clock.h"

namespace scaletrain::launcher {

class StopLadder {
 public:
  // A killed process that remains longer than this hangs in the kernel and is not waited for.
  static constexpr std::chrono::milliseconds kKillPatience{10'000};

  enum class Step { kNothing, kKill, kGiveUp };

  // `grace`: time from SIGTERM to SIGKILL.
  explicit StopLadder(std::chrono::milliseconds grace) : grace_(grace) {}

  bool stopping() const { return stopping_; }
  bool given_up() const { return given_up_; }

  // Records that the workers were sent SIGTERM. Call it once, while not stopping().
  void ask(core::SteadyTime now);
  // Records that the workers are killed, whether SIGTERM was sent before or not; returns false if
  // they were killed already.
  bool kill(core::SteadyTime now);
  // Returns the step due at `now`. kKill: the grace period is over, call kill(); kGiveUp, once:
  // workers that were killed are still there.
  Step due(core::SteadyTime now);
  // Returns when due() must be called next; nullopt: nothing is awaited.
  std::optional<core::SteadyTime> deadline() const { return deadline_; }

 private:
  std::chrono::milliseconds grace_;
  bool stopping_ = false, killed_ = false, given_up_ = false;
  std::optional<core::SteadyTime> deadline_;  // end of the grace period, then of kKillPatience
};

}  // namespace scaletrain::launcher
