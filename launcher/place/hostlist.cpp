#include "launcher/place/hostlist.h"

#include <fmt/format.h>

#include <string_view>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kMostHosts = 65536;

class Expansion {
 public:
  Expansion(const std::string& place, const std::string& text) : place_(place), text_(text) {}

  std::vector<std::string> hosts() {
    std::vector<std::string> result;
    for (const std::string_view entry : split(text_, true)) {
      for (std::string& host : expand(entry)) result.push_back(std::move(host));
      if (result.size() > kMostHosts) refuse();
    }
    return result;
  }

 private:
  [[noreturn]] void refuse() const {
    throw core::UsageError(place_,
                           fmt::format("\"{}\" is not a list of hosts", core::printable(text_)),
                           "it should look like gpu[01-03,7],login");
  }

  // Splits at commas; with `brackets`, not at those inside brackets.
  std::vector<std::string_view> split(std::string_view text, bool brackets) const {
    std::vector<std::string_view> result;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && brackets) {
        if (text[i] == '[') ++depth;
        if (text[i] == ']') --depth;
        if (depth < 0 || depth > 1) refuse();
      }
      if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
      if (i == begin) refuse();
      result.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
    if (depth != 0) refuse();
    return result;
  }

  std::vector<std::string> expand(std::string_view entry) const {
    const std::size_t open = entry.find('[');
    if (open == std::string_view::npos) return {std::string(entry)};
    const std::size_t close = entry.find(']', open);
    const std::vector<std::string> tails =
        close + 1 < entry.size() ? expand(entry.substr(close + 1)) : std::vector<std::string>{""};
    std::vector<std::string> result;
    for (const std::string_view range : split(entry.substr(open + 1, close - open - 1), false)) {
      for (const std::string& number : numbers(range)) {
        for (const std::string& tail : tails) {
          if (result.size() > kMostHosts) refuse();
          result.push_back(fmt::format("{}{}{}", entry.substr(0, open), number, tail));
        }
      }
    }
    return result;
  }

  // "01-03": 01, 02, 03, as wide as the first; "7": 7.
  std::vector<std::string> numbers(std::string_view range) const {
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::size_t first = number(low);
    const std::size_t last =
        dash == std::string_view::npos ? first : number(range.substr(dash + 1));
    if (last < first || last - first > kMostHosts) refuse();
    std::vector<std::string> result;
    for (std::size_t i = first; i <= last; ++i) {
      result.push_back(fmt::format("{:0{}}", i, low.size()));
    }
    return result;
  }

  std::size_t number(std::string_view text) const {
    const auto value = core::parse_number<std::size_t>(text);
    if (!value || text.size() > 9) refuse();
    return *value;
  }

  const std::string& place_;
  const std::string& text_;
};

}  // namespace

std::vector<std::string> expand_hostlist(const std::string& place, const std::string& text) {
  return Expansion(place, text).hosts();
}

}  // namespace scaletrain::launcher
