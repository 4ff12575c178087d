// UTF-8 characters, and the texts that stand for single bytes in vocabularies.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace scaletrain::app {

// How many bytes the character has that begins with `first`, of text that is UTF-8.
std::size_t character_bytes(char first);

// The character that stands for a byte: itself where it is printable and no blank of Latin-1, else
// the next unused one from U+0100 on (GPT-2's bytes_to_unicode).
const std::string& byte_as_text(unsigned char byte);

std::string bytes_as_text(std::string_view bytes);

// Inverse of bytes_as_text(); a character that stands for no byte is kept.
std::string text_as_bytes(std::string_view text);

// The byte of "<0x0A>"; nullopt for any other text.
std::optional<std::string> byte_of_name(std::string_view name);

// `text` with `by` in the place of every `what`, which is not empty.
std::string replace_all(std::string_view text, std::string_view what, std::string_view by);

}  // namespace scaletrain::app
