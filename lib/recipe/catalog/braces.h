// Brace expansion: "train-{000000..000003}.tar" and "{a,b}.tar" become the names they stand for.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::recipe {

inline constexpr std::size_t kMaxExpanded = 100000;

// Returns the names in order, the first brace changing slowest; numbers keep the width of the first
// one. A text without braces is returned as it is. On a mistake the result is empty and `mistake`
// has the reason.
std::vector<std::string> expand_braces(const std::string& text, std::string& mistake);

}  // namespace scaletrain::recipe
