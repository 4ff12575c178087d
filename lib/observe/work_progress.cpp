#include "lib/observe/work_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lib/observe/progress_text.h"
#include "lib/observe/terminal.h"

namespace scaletrain::observe {
namespace {

constexpr double kRedrawWorkSeconds = 0.1;
constexpr int kNarrowestWorkBar = 10;

}  // namespace

std::string work_text(const WorkState& state, int width) {
  std::string text = state.total > 0 ? fmt::format("{} {}/{}", state.label, state.done, state.total)
                                     : fmt::format("{} {}", state.label, state.done);
  if (state.bytes > 0 && state.seconds > 0) {
    text += fmt::format("  {:.1f} MB/s", static_cast<double>(state.bytes) / 1e6 / state.seconds);
  }
  const double share =
      state.total > 0 ? static_cast<double>(state.done) / static_cast<double>(state.total) : 0;
  if (share > 0 && share < 1) {
    text += "  left " + format_duration(state.seconds / share * (1 - share));
  }
  if (static_cast<int>(text.size()) > width) {
    text.resize(static_cast<std::size_t>(std::max(width, 0)));
  }
  const int room = width - static_cast<int>(text.size()) - 1;
  if (state.total <= 0 || room < kNarrowestWorkBar) return text;
  return bar(share, room) + " " + text;
}

WorkProgress::WorkProgress(int fd, std::string label, std::int64_t total)
    : fd_(fd), terminal_(isatty(fd) == 1), start_(core::now()), drawn_(start_) {
  state_.label = std::move(label);
  state_.total = total;
}

WorkProgress::~WorkProgress() {
  if (shown_) offer(fd_, "\r\x1b[K", 0);
}

void WorkProgress::add(std::int64_t items, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  state_.done += items;
  state_.bytes += bytes;
  if (!terminal_ || core::seconds_since(drawn_) < kRedrawWorkSeconds) return;
  state_.seconds = core::seconds_since(start_);
  offer(fd_, "\r" + work_text(state_, columns(fd_)) + "\x1b[K", 0);
  drawn_ = core::now();
  shown_ = true;
}

}  // namespace scaletrain::observe
