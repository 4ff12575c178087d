// Text from data (keys, class names, names of files, texts) as it may be printed on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// `text` on one line: newlines are \n, tabs \t, and each byte of another control character (C0, C1,
// DEL, and U+202A to 202E and U+2066 to 2069, which reorder text) or of invalid UTF-8 is \xNN.
// Printable text stays as it is, and so does a backslash: applied twice, it is the same as once.
std::string printable(std::string_view text);

// As printable(), of text of several lines: newlines and tabs stay.
std::string printable_lines(std::string_view text);

}  // namespace scaletrain::core
