#include "app/tokenizer/text_stream.h"

#include <algorithm>
#include <utility>

#include "app/tokenizer/utf8.h"

namespace scaletrain::app {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct Bounds {
  unsigned char least = 0x80, most = 0xBF;
};

// Allowed range of the second byte after `first`: excludes overlong forms, surrogate halves and
// code points beyond U+10FFFF (The Unicode Standard, table 3-7).
Bounds second_byte(unsigned char first) {
  if (first == 0xE0) return {.least = 0xA0};
  if (first == 0xED) return {.most = 0x9F};
  if (first == 0xF0) return {.least = 0x90};
  if (first == 0xF4) return {.most = 0x8F};
  return {};
}

bool can_begin(unsigned char byte) { return byte < 0x80 || (byte >= 0xC2 && byte <= 0xF4); }

// Returns the number of bytes at the front that belong together: a whole character, or the
// beginning of one.
std::size_t front_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (!can_begin(first)) return 1;
  const std::size_t wanted = std::min(character_bytes(text.front()), text.size());
  std::size_t count = 1;
  for (; count < wanted; ++count) {
    const auto byte = static_cast<unsigned char>(text[count]);
    const Bounds bounds = count == 1 ? second_byte(first) : Bounds{};
    if (byte < bounds.least || byte > bounds.most) break;
  }
  return count;
}

bool is_whole(std::string_view part) {
  return can_begin(static_cast<unsigned char>(part.front())) &&
         part.size() == character_bytes(part.front());
}

}  // namespace

std::string TextStream::add(std::string_view bytes) {
  held_ += bytes;
  std::string shown;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, front_bytes(rest));
    const bool may_go_on =
        part.size() == rest.size() && can_begin(static_cast<unsigned char>(part.front()));
    if (is_whole(part)) {
      shown += part;
    } else if (may_go_on) {
      break;
    } else {
      shown += kReplacement;
    }
    rest.remove_prefix(part.size());
  }
  held_ = std::string(rest);
  return shown;
}

std::string TextStream::finish() { return std::exchange(held_, "").empty() ? "" : kReplacement; }

}  // namespace scaletrain::app
