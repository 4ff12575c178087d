#include "app/tokenizer/utf8.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "lib/core/text/text.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kBytes = 256;

std::string two_bytes(unsigned code) {  // U+0080 to U+07FF
  return {static_cast<char>(0xC0U | code >> 6U), static_cast<char>(0x80U | (code & 0x3FU))};
}

bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

}  // namespace

std::size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

const std::string& byte_as_text(unsigned char byte) {
  static const std::array<std::string, kBytes> all = [] {
    std::array<std::string, kBytes> texts;
    unsigned next = 0x100;
    for (unsigned i = 0; i < kBytes; ++i) {
      const unsigned code = stands_for_itself(i) ? i : next++;
      texts[i] = code < 0x80 ? std::string(1, static_cast<char>(code)) : two_bytes(code);
    }
    return texts;
  }();
  return all[byte];
}

std::string bytes_as_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += byte_as_text(static_cast<unsigned char>(c));
  return text;
}

std::string text_as_bytes(std::string_view text) {
  static const std::unordered_map<std::string_view, char> bytes = [] {
    std::unordered_map<std::string_view, char> result;
    for (std::size_t byte = 0; byte < kBytes; ++byte) {
      const auto value = static_cast<unsigned char>(byte);
      result.emplace(byte_as_text(value), static_cast<char>(value));
    }
    return result;
  }();
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, character_bytes(text[at]));
    const auto found = bytes.find(character);
    if (found == bytes.end()) {
      result += character;
    } else {
      result += found->second;
    }
    at += character.size();
  }
  return result;
}

std::optional<std::string> byte_of_name(std::string_view name) {
  constexpr std::size_t kLength = 6;
  if (name.size() != kLength || !name.starts_with("<0x") || !name.ends_with('>')) {
    return std::nullopt;
  }
  const auto value = core::parse_number<unsigned char>(name.substr(3, 2), 16);
  if (!value) return std::nullopt;
  return std::string(1, static_cast<char>(*value));
}

std::string replace_all(std::string_view text, std::string_view what, std::string_view by) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(what, at), text.size());
    result += text.substr(at, found - at);
    if (found < text.size()) result += by;
    at = std::min(found + what.size(), text.size());
  }
  return result;
}

}  // namespace scaletrain::app
