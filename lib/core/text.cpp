#include "lib/core/text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace scaletrain::core {

std::string hex(std::span<const std::byte> bytes) {
  std::string digits;
  for (const std::byte byte : bytes) digits += fmt::format("{:02x}", std::to_integer<int>(byte));
  return digits;
}

std::string hex(std::string_view bytes) { return hex(std::as_bytes(std::span(bytes))); }

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace scaletrain::core
