#include "lib/core/text/text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace scaletrain::core {

std::string hex(std::span<const std::byte> bytes) {
  std::string digits;
  for (const std::byte byte : bytes) digits += fmt::format("{:02x}", std::to_integer<int>(byte));
  return digits;
}

std::string hex(std::string_view bytes) { return hex(std::as_bytes(std::span(bytes))); }

std::string counted(std::int64_t count, std::string noun) {
  if (count != 1) {
    const bool hisses = noun.ends_with('s') || noun.ends_with('x') || noun.ends_with('z') ||
                        noun.ends_with("ch") || noun.ends_with("sh");
    const bool has_ies = noun.size() > 1 && noun.ends_with('y') &&
                         std::string_view("aeiou").find(noun[noun.size() - 2]) == std::string::npos;
    if (has_ies) noun.replace(noun.size() - 1, 1, "ie");
    noun += hisses ? "es" : "s";
  }
  return fmt::format("{} {}", count, noun);
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace scaletrain::core
