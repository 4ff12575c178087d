#include "lib/core/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include "lib/core/console.h"
#include "lib/core/error.h"
#include "lib/core/line_start.h"
#include "lib/core/printable.h"

namespace scaletrain::core {
namespace {

std::string& log_prefix() {
  static std::string prefix;
  return prefix;
}

std::function<void(const std::string&)>& warning_listener() {
  static std::function<void(const std::string&)> listener;
  return listener;
}

// A console that lines must not wait for.
struct LimitedConsole {
  explicit LimitedConsole(std::chrono::milliseconds time) : limit(time) {}

  Console console{STDERR_FILENO};
  std::chrono::milliseconds limit;
  bool stands_still = false;
  std::mutex mutex{};
};

std::unique_ptr<LimitedConsole>& limited_console() {
  static std::unique_ptr<LimitedConsole> limited;
  return limited;
}

void write_limited(LimitedConsole& to, std::string_view text) {
  const std::lock_guard lock(to.mutex);
  while (!text.empty() && !to.console.gone()) {
    const std::size_t count = to.console.write_some(text);
    text.remove_prefix(count);
    if (count > 0) {
      to.stands_still = false;
    } else if (to.stands_still || !to.console.wait(to.limit)) {
      to.stands_still = true;
      return;
    }
  }
}

// Once, to who hears warnings: the file behind standard error takes no more. A reader that has gone
// is not a fault.
void report_lost_lines(int error) {
  static std::atomic<bool> has_reported = false;
  if (error == EPIPE || error == EAGAIN || !warning_listener() || has_reported.exchange(true))
    return;
  warning_listener()(
      fmt::format("warning: the log cannot be written: {}; its lines are lost", errno_text(error)));
}

}  // namespace

void set_log_prefix(std::string prefix) { log_prefix() = std::move(prefix); }

void limit_log_wait(std::chrono::milliseconds limit) {
  limited_console() = std::make_unique<LimitedConsole>(limit);
}

void log_line(std::string_view text) {
  const std::string line =
      fmt::format("{}{}{}\n", to_line_start(), log_prefix(), printable_lines(text));
  if (limited_console()) return write_limited(*limited_console(), line);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) report_lost_lines(errno);
    if (written <= 0) return;  // a log line is never worth an exit
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void set_warning_listener(std::function<void(const std::string&)> listener) {
  warning_listener() = std::move(listener);
}

void warn_line(std::string_view text) {
  const std::string line = fmt::format("warning: {}", text);
  log_line(line);
  if (warning_listener()) warning_listener()(printable_lines(line));
}

}  // namespace scaletrain::core
