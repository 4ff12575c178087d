#include "lib/core/printable.h"

#include <cstddef>

namespace scaletrain::core {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

bool is_between(unsigned char byte, unsigned char first, unsigned char last) {
  return first <= byte && byte <= last;
}

// Bytes of the character that `text` begins with, 0 for invalid UTF-8 (Unicode 15, table 3-7).
std::size_t character_size(std::string_view text) {
  const unsigned char first = byte_at(text, 0), second = byte_at(text, 1);
  const auto continues = [&](std::size_t at) { return is_between(byte_at(text, at), 0x80, 0xbf); };
  if (first < 0x80) return 1;
  if (is_between(first, 0xc2, 0xdf)) return continues(1) ? 2 : 0;
  if (is_between(first, 0xe0, 0xef)) {
    const bool is_second = is_between(second, first == 0xe0 ? 0xa0 : 0x80,  // no overlong form
                                      first == 0xed ? 0x9f : 0xbf);         // no surrogate
    return is_second && continues(2) ? 3 : 0;
  }
  if (is_between(first, 0xf0, 0xf4)) {
    const bool is_second = is_between(second, first == 0xf0 ? 0x90 : 0x80,  // no overlong form
                                      first == 0xf4 ? 0x8f : 0xbf);  // nothing above U+10FFFF
    return is_second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

// True for U+202A to U+202E and U+2066 to U+2069, which show the text behind them in another order
// (Boucher and Anderson, "Trojan Source", 2021).
bool reorders(std::string_view character) {
  if (!character.starts_with("\xe2\x80") && !character.starts_with("\xe2\x81")) return false;
  const unsigned char last = byte_at(character, 2);
  return byte_at(character, 1) == 0x80 ? is_between(last, 0xaa, 0xae)
                                       : is_between(last, 0xa6, 0xa9);
}

// A valid character: C0, DEL, C1, which is 0xC2 and 0x80 to 0x9F, or one that reorders text.
bool is_control(std::string_view character) {
  if (reorders(character)) return true;
  const unsigned char first = byte_at(character, 0);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && byte_at(character, 1) < 0xa0);
}

// Printable ASCII, which most text is.
bool is_plain(char one) { return ' ' <= one && one <= '~'; }

std::string escaped(std::string_view text, bool keeps_lines) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t size = character_size(text);
    const std::string_view character = text.substr(0, size == 0 ? 1 : size);
    text.remove_prefix(character.size());
    if (character == "\n" || character == "\t") {
      result += keeps_lines ? character : character == "\n" ? "\\n" : "\\t";
    } else if (size == 0 || is_control(character)) {
      for (const char c : character) {
        const auto byte = static_cast<unsigned char>(c);
        result += "\\x";
        result += kDigits[byte >> 4U];
        result += kDigits[byte & 15U];
      }
    } else {
      result += character;
    }
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, /*keeps_lines=*/false); }

std::string printable_lines(std::string_view text) { return escaped(text, /*keeps_lines=*/true); }

}  // namespace scaletrain::core
