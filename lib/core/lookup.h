// "did you mean": the known name nearest to a wrong one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::core {

// Damerau-Levenshtein distance (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The name of `known` nearest to `name`, or "" when none is near enough to be meant.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// `did you mean "lr"?`, or "" when none is near, or `name` is too long to be a slip.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace scaletrain::core
