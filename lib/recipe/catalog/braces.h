// "train-{000000..000003}.tar" and "{a,b}.tar" to the names they stand for.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::recipe {

inline constexpr std::size_t kMaxExpanded = 100000;

// In order, the first brace changing slowest; the width of the first number is kept. Text without
// braces stands for itself. On a mistake the result is empty and `mistake` says why.
std::vector<std::string> expand_braces(const std::string& text, std::string& mistake);

}  // namespace scaletrain::recipe
