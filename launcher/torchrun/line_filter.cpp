#include "launcher/torchrun/line_filter.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kLongestLine = 64 << 10;

}  // namespace

void LineFilter::take(std::string_view text) {
  while (file_ && !text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\r"), text.size());
    line_ += text.substr(0, end);
    if (end < text.size() || line_.size() > kLongestLine) end_line();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void LineFilter::finish() {
  if (!line_.empty()) end_line();
}

void LineFilter::end_line() {
  const bool is_wanted = std::any_of(wanted_.begin(), wanted_.end(), [&](const std::string& text) {
    return line_.find(text) != std::string::npos;
  });
  if (is_wanted) {
    const std::string whole = prefix_ + line_ + "\n";
    ssize_t count = 0;
    do {
      count = write(file_.get(), whole.data(), whole.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) file_.reset();  // disk full: the stream itself has the line
  }
  line_.clear();
}

}  // namespace scaletrain::launcher
