// "did you mean": finds the known name nearest to a wrong one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::core {

// Returns the Damerau-Levenshtein distance (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns `text` with its ASCII letters in lower case.
std::string lower_case(std::string_view text);

// Returns the name in `known` that is nearest to `name`, ignoring case; "" if none is near enough.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// Returns `did you mean "lr"?`; "" if no name is near or `name` is too long for a typing error.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace scaletrain::core
