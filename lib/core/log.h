// Logs complete lines on standard error, each with one write(2), so that lines of different ranks
// do not mix.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace scaletrain::core {

// Sets the prefix of every line of this process, "[rank 3] " for a worker; empty by default. Call
// once, before threads are started.
void set_log_prefix(std::string prefix);

// Limits how long a line waits for a console that accepts nothing: after `limit` the line is lost,
// and later lines do not wait until the console accepts output again. For a process that handles
// signals only between its own steps. Call before threads are started.
void limit_log_wait(std::chrono::milliseconds limit);

// Writes PREFIX + printable_lines(text) + newline.
void log_line(std::string_view text);

template <class... Args>
void log(fmt::format_string<Args...> format, Args&&... args) {
  log_line(fmt::format(format, std::forward<Args>(args)...));
}

// Sets a function that also receives each warning, escaped and with "warning: " in front, from any
// thread; for the console of a worker whose standard error is a file. Call once, before threads are
// started.
void set_warning_listener(std::function<void(const std::string& line)> listener);

void warn_line(std::string_view text);

// Like log, with "warning: " in front.
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  warn_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace scaletrain::core
