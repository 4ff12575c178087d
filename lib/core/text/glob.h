// Names by patterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::core {

// True if all of `name` matches `pattern`, in which "*" stands for any characters, dots among them,
// or none, and everything else for itself.
bool matches(std::string_view pattern, std::string_view name);

bool matches_any(const std::vector<std::string>& patterns, std::string_view name);

}  // namespace scaletrain::core
