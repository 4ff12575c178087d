#include "lib/core/text/glob.h"

#include <algorithm>

namespace scaletrain::core {

// A star's match grows only until the next star is reached: then earlier stars are never revisited.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, next = 0;
  std::size_t star = std::string_view::npos, after_star = 0;  // places in pattern and name
  while (next < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      after_star = next;
    } else if (at < pattern.size() && pattern[at] == name[next]) {
      ++at;
      ++next;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      next = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

}  // namespace scaletrain::core
