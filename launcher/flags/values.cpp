#include "launcher/flags/values.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {

int parse_count(const std::string& flag, const std::string& text, int low, int high) {
  const auto value = core::parse_number<int>(text);
  if (!value || *value < low || *value > high) {
    throw core::UsageError(flag, fmt::format("\"{}\" is not allowed", core::printable(text)),
                           fmt::format("give a whole number from {} to {}", low, high));
  }
  return *value;
}

std::chrono::milliseconds parse_duration(const std::string& flag, const std::string& text) {
  constexpr std::int64_t kWeekMs = 7LL * 24 * 3600 * 1000;
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const std::int64_t unit_ms = unit == "ms"  ? 1
                               : unit == "s" ? 1000
                               : unit == "m" ? 60'000
                               : unit == "h" ? 3'600'000
                                             : 0;
  if (error != std::errc() || unit_ms == 0 || value < 0 || value > kWeekMs / unit_ms) {
    throw core::UsageError(flag, fmt::format("\"{}\" is not a duration", core::printable(text)),
                           "give a whole number and a unit: 500ms, 10s, 5m, 2h");
  }
  return std::chrono::milliseconds(value * unit_ms);
}

}  // namespace scaletrain::launcher
