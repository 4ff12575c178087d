// Limits the number and rate of restarts after failures.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "launcher/flags/timing.h"
#include "lib/core/clock.h"

namespace scaletrain::launcher {

class Restarts {
 public:
  static constexpr std::chrono::seconds kQuick{60}, kMostDelay{60};

  // `used`: restarts used by a previous launcher of the job.
  explicit Restarts(RestartLimits limits, int used = 0) : limits_(limits), used_(used) {}

  // Call after an attempt of length `lasted` failed at `now`. Returns the delay before the next
  // one, which uses up a restart; nullopt: no restart is left.
  std::optional<std::chrono::milliseconds> next(core::SteadyTime now,
                                                std::chrono::milliseconds lasted);
  int used() const { return used_; }

  // Returns "starting again: restart 2 of 5, in 4 s".
  std::string text(std::chrono::milliseconds wait) const;
  // After next() returned nullopt: returns a new line if only the hourly limit prevents a restart;
  // "" otherwise.
  std::string refusal() const;

 private:
  RestartLimits limits_;
  int used_;
  int quick_ = 0;  // consecutive failures within kQuick
  std::deque<core::SteadyTime> last_hour_;
};

}  // namespace scaletrain::launcher
