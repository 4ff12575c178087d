#include "launcher/output/output_relay.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kLongestPart = 64 << 10;
constexpr std::chrono::milliseconds kConsolePatience{1000};
constexpr std::chrono::milliseconds kLineEndPatience{100};

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
  skip_to_last(text);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\r"), text.size());
    if (end > 0) append(text.substr(0, end));
    if (end == text.size()) return;
    if (text[end] == '\n') {
      if (ended_) append("");
      ended_ = true;
    }
    returned_ = text[end] == '\r';
    text.remove_prefix(end + 1);
  }
}

// Skips the text before the last lines of `text`, which is not kept in any case.
void LastLines::skip_to_last(std::string_view& text) {
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines <= kLines; ++lines) {
    begin = begin == 0 ? std::string_view::npos : text.rfind('\n', begin - 1);
    if (begin == std::string_view::npos) return;
  }
  text.remove_prefix(begin + 1);
  lines_.clear();
  ended_ = true;
  returned_ = false;
}

void LastLines::append(std::string_view text) {
  if (ended_) lines_.emplace_back();
  if (lines_.size() > kLines) lines_.pop_front();
  std::string& line = lines_.back();
  if (returned_) line.clear();
  line += text.substr(0, kLineBytes - std::min(kLineBytes, line.size()));
  ended_ = returned_ = false;
}

std::vector<std::string> LastLines::lines() const { return {lines_.begin(), lines_.end()}; }

core::Console* OutputRelay::late_console() const {
  const bool is_late = !console_->gone() && !pending_.empty();
  return is_late ? console_ : nullptr;
}

void OutputRelay::advance() {
  if (late_console() != nullptr) {
    write_some();
  } else {
    read_some();
  }
}

void OutputRelay::finish() {
  // A process that has left its group may continue writing: reads only the bytes that are available
  // now.
  int left = 0;
  if (source_) ioctl(source_.get(), FIONREAD, &left);
  flush();
  while (left > 0) {
    const ssize_t count = read_some();
    if (count == 0 || (count < 0 && errno != EINTR)) break;
    left -= static_cast<int>(std::max<ssize_t>(0, count));
    flush();
  }
  show(splitter_.rest());
  filter_.finish();
  flush();
  source_.reset();
}

void OutputRelay::flush() {
  while (late_console() != nullptr) {
    if (console_->wait(kConsolePatience)) {
      write_some();
    } else {
      console_->give_up();
    }
  }
}

void OutputRelay::show_late(core::SteadyTime now) {
  if (!late_at_ || now < *late_at_) return;
  late_at_.reset();
  show(splitter_.rest());
}

ssize_t OutputRelay::read_some() {
  std::array<char, 64 << 10> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t count = read(source_.get(), buffer.data(), buffer.size());
  if (count < 0) return count;
  if (count == 0) {
    late_at_.reset();
    show(splitter_.rest());
    source_.reset();
    return 0;
  }
  const std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  last_lines_.add(text);
  filter_.take(text);
  show(splitter_.take(text));
  late_at_.reset();
  if (splitter_.waits() && prefix_.empty()) late_at_ = core::now() + kLineEndPatience;
  copy_.append(text);
  return count;
}

void OutputRelay::show(const std::string& text) {
  if (console_->gone()) return pending_.clear();
  if (prefix_.empty()) {
    pending_ += text;
    return;
  }
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find_first_of("\n\r");
    const std::string_view piece = rest.substr(0, end == std::string_view::npos ? end : end + 1);
    if (at_line_start_) pending_ += prefix_;
    pending_ += piece;
    at_line_start_ = end != std::string_view::npos;
    rest.remove_prefix(piece.size());
  }
}

void OutputRelay::write_some() { pending_.erase(0, console_->write_some(pending_)); }

}  // namespace scaletrain::launcher
