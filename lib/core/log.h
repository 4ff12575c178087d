// Whole lines on standard error, each written by one write(2), so that ranks do not mix in a line.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace scaletrain::core {

// A prefix of every line of this process, "[rank 3] " for a worker; empty at first. Set it once,
// before threads are started.
void set_log_prefix(std::string prefix);

// After this call a line waits `limit` at most for a console that takes nothing, and is lost; the
// next ones do not wait at all, until it takes something again. For a process that hears signals
// only between its own steps. Call it before threads are started.
void limit_log_wait(std::chrono::milliseconds limit);

// Writes PREFIX + printable_lines(text) + newline.
void log_line(std::string_view text);

template <class... Args>
void log(fmt::format_string<Args...> format, Args&&... args) {
  log_line(fmt::format(format, std::forward<Args>(args)...));
}

// Who hears each warning too, escaped and with "warning: " in front, from any thread: the console
// of a worker whose standard error is a file. Set it once, before threads are started.
void set_warning_listener(std::function<void(const std::string& line)> listener);

void warn_line(std::string_view text);

// As log, with "warning: " in front.
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  warn_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace scaletrain::core
