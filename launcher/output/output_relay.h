// Relays one output stream of a worker: complete lines to the console, a copy to a file, and the
// last lines for the report.
//
// Never blocks: while the console accepts nothing, nothing more is read, and the worker waits as if
// it wrote to the console itself.
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

// Splits text that arrives in pieces into complete lines; a carriage return ends a line too
// (progress bars).
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

// The last `kLines` lines of a stream as a terminal would show them: text after a carriage return
// replaces the line.
class LastLines {
 public:
  static constexpr std::size_t kLines = 20;
  void add(std::string_view text);  // any piece of text; lines may be incomplete
  std::vector<std::string> lines() const;

 private:
  static constexpr std::size_t kLineBytes = 4096;  // only the start of a longer line is kept
  void append(std::string_view text);
  void skip_to_last(std::string_view& text);

  std::deque<std::string> lines_;
  bool ended_ = true;      // the last line is complete
  bool returned_ = false;  // the text ended with a carriage return
};

class OutputRelay {
 public:
  // Reads `source` (non-blocking) and writes to `console`, which may be shared and must outlive
  // this object, with `prefix` before every line, and to `copy`; `filter` gets every line too.
  OutputRelay(core::Descriptor source, core::Console& console, LogFile copy,
              std::string prefix = "", LineFilter filter = {})
      : source_(std::move(source)),
        console_(&console),
        copy_(std::move(copy)),
        prefix_(std::move(prefix)),
        filter_(std::move(filter)) {}

  // Returns the descriptor to poll: the source, or the console while it lags; -1 when all is done.
  int watched_fd() const { return late_console() != nullptr ? console_->fd() : source_.get(); }
  short watched_events() const { return late_console() != nullptr ? POLLOUT : POLLIN; }
  // Returns the console while it lags, else null.
  core::Console* late_console() const;
  // Call when poll reported the watched descriptor.
  void advance();
  // Returns when show_late() shows an incomplete line: questions and progress bars have no line
  // end. With a prefix only complete lines are shown.
  std::optional<core::SteadyTime> late_at() const { return late_at_; }
  void show_late(core::SteadyTime now);
  // Passes on everything that has arrived. If the console accepts nothing for a second, it is
  // abandoned for all streams that share it.
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
