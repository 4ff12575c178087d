// Text and bytes for a self-contained HTML page.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// Encodes as base64 (RFC 4648) with padding, for data: URLs.
std::string base64(std::string_view bytes);

// Escapes text from files, such as names: the result has no markup, and "?" in place of control
// characters.
std::string escape_html(std::string_view text);

}  // namespace scaletrain::core
