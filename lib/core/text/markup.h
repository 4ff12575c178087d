// Text and bytes for a page of HTML that stands alone.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// RFC 4648, with padding: for data: addresses.
std::string base64(std::string_view bytes);

// Names come out of files: nothing of the result is markup, and control characters are "?".
std::string escape_html(std::string_view text);

}  // namespace scaletrain::core
