// Progress bar for work counted in items; shows nothing without a terminal.
//
// Like Progress it never stops or delays the work. SIGPIPE must be ignored.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "lib/core/clock.h"

namespace scaletrain::observe {

struct WorkState {
  std::string label;       // "packing"
  std::int64_t done = 0;   // items
  std::int64_t total = 0;  // 0: not known
  std::int64_t bytes = 0;  // 0: left out
  double seconds = 0;      // since the start
};

// One line without a newline, at most `width` columns:
// "[====>    ] packing 1200/5000  98.1 MB/s  left 12s".
std::string work_text(const WorkState& state, int width);

class WorkProgress {
 public:
  // Draws on `fd`, which the caller owns, if it is a terminal.
  WorkProgress(int fd, std::string label, std::int64_t total);
  ~WorkProgress();  // removes the bar
  WorkProgress(const WorkProgress&) = delete;
  WorkProgress& operator=(const WorkProgress&) = delete;

  // Adds finished items and bytes; from any thread. Redraws at most 10 times a second.
  void add(std::int64_t items, std::int64_t bytes = 0);

 private:
  std::mutex mutex_;
  int fd_;
  bool terminal_;
  bool shown_ = false;
  WorkState state_;
  core::SteadyTime start_, drawn_;
};

}  // namespace scaletrain::observe
