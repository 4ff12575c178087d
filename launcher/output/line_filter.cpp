#include "launcher/output/line_filter.h"

#include <algorithm>

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
  if (is_wanted) file_.append(prefix_ + line_ + "\n");
  line_.clear();
}

}  // namespace scaletrain::launcher
