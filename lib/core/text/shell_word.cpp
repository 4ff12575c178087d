#include "lib/core/text/shell_word.h"

#include <string_view>

namespace scaletrain::core {
namespace {

constexpr std::string_view kPlainCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=+,@%";

}  // namespace

std::string shell_word(const std::string& text) {
  if (!text.empty() && text.find_first_not_of(kPlainCharacters) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char character : text) {
    if (character == '\'') {
      quoted += "'\\''";
    } else {
      quoted += character;
    }
  }
  return quoted + "'";
}

}  // namespace scaletrain::core
