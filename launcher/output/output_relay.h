// One output stream of a worker that passes through the launcher: whole lines to the console, a
// copy to a file, and the last lines kept for the report.
//
// It never blocks: while the console does not take more, nothing more is read, and the worker waits
// as it would if it wrote to the console itself.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/output/line_filter.h"
#include "launcher/output/log_file.h"
#include "lib/core/clock.h"
#include "lib/core/console.h"
#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

// Text in pieces, split into whole lines; a carriage return ends a line too (progress bars).
class LineSplitter {
 public:
  // Returns the text to pass on now; an incomplete line waits, unless it grows beyond 64 KiB.
  std::string take(std::string_view text);
  // Returns the text that waits.
  std::string rest();
  bool waits() const { return !partial_.empty(); }

 private:
  std::string partial_;
};

// The last `kLines` lines of a stream, as a terminal would show them: what follows a carriage
// return takes the place of what its line held.
class LastLines {
 public:
  static constexpr std::size_t kLines = 20;
  void add(std::string_view text);  // any piece; lines may be torn
  std::vector<std::string> lines() const;

 private:
  static constexpr std::size_t kLineBytes = 4096;  // only the start of a longer line is kept
  void append(std::string_view text);
  void skip_to_last(std::string_view& text);

  std::deque<std::string> lines_;
  bool ended_ = true;      // the last line has its end
  bool returned_ = false;  // a carriage return came last
};

class OutputRelay {
 public:
  // Reads `source` (non-blocking), writes to `console`, which several may share and which outlives
  // this, with `prefix` before every line, and to `copy`; `filter` sees every line too.
  OutputRelay(core::Descriptor source, core::Console& console, LogFile copy,
              std::string prefix = "", LineFilter filter = {})
      : source_(std::move(source)),
        console_(&console),
        copy_(std::move(copy)),
        prefix_(std::move(prefix)),
        filter_(std::move(filter)) {}

  // Descriptor to poll: the source, or the console while it lags; -1 when all is done.
  int watched_fd() const { return late_console() != nullptr ? console_->fd() : source_.get(); }
  short watched_events() const { return late_console() != nullptr ? POLLOUT : POLLIN; }
  // The console while it has not taken all that it should, else null.
  core::Console* late_console() const;
  // Call when poll reported the watched descriptor.
  void advance();
  // Part of a line that waits for its end is shown at this time all the same, as by show_late():
  // questions and progress bars have no end. With a prefix whole lines are shown only.
  std::optional<core::SteadyTime> late_at() const { return late_at_; }
  void show_late(core::SteadyTime now);
  // Passes on what has arrived so far; gives the console up, for all that share it, when it takes
  // nothing for a second.
  void finish();

  std::vector<std::string> last_lines() const { return last_lines_.lines(); }

 private:
  ssize_t read_some();  // 0: the end
  void write_some();
  void flush();
  void show(const std::string& text);

  core::Descriptor source_;
  core::Console* console_;
  LogFile copy_;
  std::string prefix_;
  LineFilter filter_;
  bool at_line_start_ = true;
  LineSplitter splitter_;
  std::optional<core::SteadyTime> late_at_;
  LastLines last_lines_;
  std::string pending_;  // for the console
};

}  // namespace scaletrain::launcher
