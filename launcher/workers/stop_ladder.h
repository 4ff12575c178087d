// How far the stopping of one attempt's workers has come: asked, killed, given up.
//
// No clock and no process: the caller passes the time and does what the steps say.
#pragma once

#include <chrono>
#include <optional>

#include "lib/core/clock.h"

namespace scaletrain::launcher {

class StopLadder {
 public:
  // A killed process that does not go within this time hangs in the kernel: nobody can wait for it.
  static constexpr std::chrono::milliseconds kKillPatience{10'000};

  enum class Step { kNothing, kKill, kGiveUp };

  // `grace`: time from SIGTERM to SIGKILL.
  explicit StopLadder(std::chrono::milliseconds grace) : grace_(grace) {}

  bool stopping() const { return stopping_; }
  bool given_up() const { return given_up_; }

  // Records that the workers were sent SIGTERM. Call it once, while not stopping().
  void ask(core::SteadyTime now);
  // The workers shall be killed, with or without having been asked; false: they have been.
  bool kill(core::SteadyTime now);
  // Returns the step due at `now`. kKill: the grace period is over, call kill(); kGiveUp, once:
  // workers that were killed are still there.
  Step due(core::SteadyTime now);
  // When due() has something to say next; nullopt: nothing is awaited.
  std::optional<core::SteadyTime> deadline() const { return deadline_; }

 private:
  std::chrono::milliseconds grace_;
  bool stopping_ = false, killed_ = false, given_up_ = false;
  std::optional<core::SteadyTime> deadline_;  // the grace period's, then the kill's
};

}  // namespace scaletrain::launcher
