#include "launcher/workers/restarts.h"

#include <fmt/format.h>

#include <algorithm>

namespace scaletrain::launcher {

using std::chrono::milliseconds;

std::optional<milliseconds> Restarts::next(core::SteadyTime now, milliseconds lasted) {
  while (!last_hour_.empty() && now - last_hour_.front() >= std::chrono::hours(1)) {
    last_hour_.pop_front();
  }
  if (used_ >= limits_.most) return std::nullopt;
  if (limits_.per_hour > 0 && static_cast<int>(last_hour_.size()) >= limits_.per_hour) {
    return std::nullopt;
  }
  ++used_;
  last_hour_.push_back(now);
  quick_ = lasted < kQuick ? quick_ + 1 : 0;
  milliseconds wait{0};
  for (int failure = 2; failure <= quick_ && wait < kMostDelay; ++failure) {
    wait = failure == 2 ? limits_.delay : 2 * wait;
  }
  return std::min<milliseconds>(wait, kMostDelay);
}

std::string Restarts::text(milliseconds wait) const {
  std::string text = fmt::format("starting again: restart {} of {}", used_, limits_.most);
  if (wait.count() > 0) {
    text += fmt::format(", in {:g} s", std::chrono::duration<double>(wait).count());
  }
  return text;
}

std::string Restarts::refusal() const {
  if (used_ >= limits_.most) return "";
  return fmt::format(
      "\n  not started again: {} restarts in the last hour, all of --restarts-per-hour",
      last_hour_.size());
}

}  // namespace scaletrain::launcher
