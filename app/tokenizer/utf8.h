// Characters of UTF-8, and bytes as the characters that stand for them in GPT-2's vocabulary.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace scaletrain::app {

// How many bytes the character has that begins with `first`, of text that is UTF-8.
std::size_t character_bytes(char first);

// The character that stands for a byte: itself where it is printable and no blank of Latin-1, else
// the next unused one from U+0100 on (GPT-2's bytes_to_unicode).
const std::string& byte_as_text(unsigned char byte);

std::string bytes_as_text(std::string_view bytes);

}  // namespace scaletrain::app
