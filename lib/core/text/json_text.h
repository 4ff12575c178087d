// JSON text that is always valid UTF-8 and safe to print on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace scaletrain::core {

// Escapes DEL and C1 control characters in `json` as \\uNNNN, as nlohmann's dump() escapes only
// those below U+0020. Inline, for libraries that do not link core.
inline std::string with_escaped_controls(std::string json) {
  if (json.find_first_of("\x7f\xc2") == std::string::npos) return json;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  result.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    // C1 is 0xC2 and 0x80 to 0x9F.
    const bool is_c1 = json[i] == '\xc2' && i + 1 < json.size() &&
                       (static_cast<unsigned char>(json[i + 1]) & 0x60U) == 0;
    if (!is_c1 && json[i] != '\x7f') {
      result += json[i];
      continue;
    }
    if (is_c1) ++i;
    const auto byte = static_cast<unsigned char>(json[i]);
    result += "\\u00";
    result += kDigits[byte >> 4U];
    result += kDigits[byte & 15U];
  }
  return result;
}

// Replaces bytes that are not UTF-8, which names of files and hosts may have. Writes one line, or
// `indent` blanks for each level.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return with_escaped_controls(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace scaletrain::core
