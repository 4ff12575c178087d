// UTF-8 characters, and representations of single bytes in vocabularies.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace scaletrain::app {

// Returns the length in bytes of the UTF-8 character that starts with `first`.
std::size_t character_bytes(char first);

// Returns the character for a byte: itself if it is printable and not a blank of Latin-1, else the
// next unused one from U+0100 on (GPT-2's bytes_to_unicode).
const std::string& byte_as_text(unsigned char byte);

std::string bytes_as_text(std::string_view bytes);

// Inverse of bytes_as_text(); a character that stands for no byte is kept.
std::string text_as_bytes(std::string_view text);

// Returns the byte of "<0x0A>"; nullopt for any other text.
std::optional<std::string> byte_of_name(std::string_view name);

// Replaces every `what`, which is not empty, in `text` by `by`.
std::string replace_all(std::string_view text, std::string_view what, std::string_view by);

}  // namespace scaletrain::app
