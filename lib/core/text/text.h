// Bytes as text, and text as numbers.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace scaletrain::core {

// As lower-case hexadecimal digits.
std::string hex(std::span<const std::byte> bytes);
std::string hex(std::string_view bytes);

// "1 shard", "2 shards": `noun` in the plural takes an "s", "es" after s, x, z, ch and sh, and
// "ies" for a "y" after a consonant.
std::string counted(std::int64_t count, std::string noun);

bool is_utf8(const std::string& text);

// The whole of `text` as a number, as std::from_chars reads it: without blanks and without a "+".
template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace scaletrain::core
