// Bytes as text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace scaletrain::core {

// As lower-case hexadecimal digits.
std::string hex(std::span<const std::byte> bytes);
std::string hex(std::string_view bytes);

bool is_utf8(const std::string& text);

}  // namespace scaletrain::core
