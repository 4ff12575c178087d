#include "lib/core/text/markup.h"

#include <cstddef>
#include <cstdint>

namespace scaletrain::core {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < part.size() ? static_cast<unsigned char>(part[k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= part.size() ? kDigits[word >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return result;
}

}  // namespace scaletrain::core
