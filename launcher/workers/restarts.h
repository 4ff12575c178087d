// How often and how soon a job is started again after a failure.
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

  // `used`: restarts that were spent before, by a launcher that is gone.
  explicit Restarts(RestartLimits limits, int used = 0) : limits_(limits), used_(used) {}

  // An attempt that lasted `lasted` failed at `now`: the wait before the next, which is spent with
  // this; nullopt: no restart is left.
  std::optional<std::chrono::milliseconds> next(core::SteadyTime now,
                                                std::chrono::milliseconds lasted);
  int used() const { return used_; }

  // "starting again: restart 2 of 5, in 4 s".
  std::string text(std::chrono::milliseconds wait) const;
  // After a next() without a restart: a new line that says so where only the hour stands in the
  // way; "" otherwise.
  std::string refusal() const;

 private:
  RestartLimits limits_;
  int used_;
  int quick_ = 0;  // failures in a row that came within kQuick
  std::deque<core::SteadyTime> last_hour_;
};

}  // namespace scaletrain::launcher
