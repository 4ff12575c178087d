#include "app/tokenizer/utf8.h"

#include <array>

namespace scaletrain::app {
namespace {

constexpr std::size_t kBytes = 256;

std::string two_bytes(unsigned code) {  // of U+0080 to U+07FF
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

}  // namespace scaletrain::app
