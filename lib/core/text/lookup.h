// "did you mean": the known name nearest to a wrong one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::core {

// Damerau-Levenshtein distance (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// `text` with its ASCII letters in lower case.
std::string lower_case(std::string_view text);

// The name of `known` nearest to `name`, without regard to
// case, or "" when none is near enough to be meant.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// `did you mean "lr"?`, or "" when none is near, or `name` is too long to be a slip.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace scaletrain::core
