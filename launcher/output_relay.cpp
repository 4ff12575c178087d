#include "launcher/output_relay.h"

#include <linux/limits.h>  // PIPE_BUF
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kLongestPart = 64 << 10;
constexpr int kConsolePatienceMs = 1000;

}  // namespace

std::string LineSplitter::take(std::string_view text) {
  const std::size_t end = text.find_last_of("\n\r");
  if (end == std::string_view::npos && partial_.size() + text.size() <= kLongestPart) {
    partial_ += text;
    return "";
  }
  const std::size_t cut = end == std::string_view::npos ? text.size() : end + 1;
  std::string ready = std::move(partial_);
  ready += text.substr(0, cut);
  partial_ = text.substr(cut);
  return ready;
}

std::string LineSplitter::rest() { return std::move(partial_); }

void LastLines::add(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (ended_) lines_.emplace_back();
    std::string& line = lines_.back();
    line += text.substr(0, std::min(end, kLineBytes - std::min(kLineBytes, line.size())));
    ended_ = end < text.size();
    text.remove_prefix(ended_ ? end + 1 : end);
    if (lines_.size() > kLines) lines_.pop_front();
  }
}

std::vector<std::string> LastLines::lines() const { return {lines_.begin(), lines_.end()}; }

short OutputRelay::watched_events() const { return pending_.empty() ? POLLIN : POLLOUT; }

void OutputRelay::advance() {
  if (pending_.empty()) {
    read_some();
  } else {
    write_some();
  }
}

void OutputRelay::finish() {
  const auto flush = [&] {
    while (!pending_.empty()) {
      pollfd console{.fd = console_, .events = POLLOUT, .revents = 0};
      if (poll(&console, 1, kConsolePatienceMs) <= 0) pending_.clear();
      if (!pending_.empty()) write_some();
    }
  };
  do {
    flush();
  } while (read_some());
  show(splitter_.rest());
  filter_.finish();
  flush();
  source_.reset();
}

bool OutputRelay::read_some() {
  if (!source_) return false;
  std::array<char, 16 << 10> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t count = read(source_.get(), buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  if (count == 0) {
    show(splitter_.rest());
    source_.reset();
    return false;
  }
  const std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  last_lines_.add(text);
  filter_.take(text);
  show(splitter_.take(text));
  // A copy that cannot be written (disk full) is given up; the console has the text.
  for (std::string_view rest = text; copy_ && !rest.empty();) {
    const ssize_t written = write(copy_.get(), rest.data(), rest.size());
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    if (written <= 0 && errno != EINTR) copy_.reset();
  }
  return true;
}

void OutputRelay::show(const std::string& text) {
  if (console_ < 0) return;
  if (prefix_.empty()) {
    pending_ += text;
    return;
  }
  for (const char letter : text) {
    if (at_line_start_) pending_ += prefix_;
    pending_ += letter;
    at_line_start_ = letter == '\n' || letter == '\r';
  }
}

void OutputRelay::write_some() {
  // POLLOUT promises room for PIPE_BUF bytes in a pipe: a write of no more cannot block.
  const ssize_t count =
      write(console_, pending_.data(), std::min<std::size_t>(pending_.size(), PIPE_BUF));
  if (count > 0) {
    pending_.erase(0, static_cast<std::size_t>(count));
  } else if (count < 0 && errno != EINTR && errno != EAGAIN) {
    pending_.clear();  // the console is gone: nobody reads on
  }
}

}  // namespace scaletrain::launcher
