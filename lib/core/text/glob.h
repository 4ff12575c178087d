// Glob patterns for names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::core {

// True if all of `name` matches `pattern`, in which "*" matches any characters, including dots and
// none at all.
bool matches(std::string_view pattern, std::string_view name);

bool matches_any(const std::vector<std::string>& patterns, std::string_view name);

}  // namespace scaletrain::core
