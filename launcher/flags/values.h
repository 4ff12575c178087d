// Parses values of flags: integers and durations.
#pragma once

#include <chrono>
#include <string>

namespace scaletrain::launcher {

// Parses an integer from `low` to `high`. Throws core::UsageError naming `flag`.
int parse_count(const std::string& flag, const std::string& text, int low, int high);

// Parses "500ms", "10s", "5m"; at most a week. Throws core::UsageError naming `flag`.
std::chrono::milliseconds parse_duration(const std::string& flag, const std::string& text);

}  // namespace scaletrain::launcher
