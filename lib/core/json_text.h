// JSON that can always be written.
#pragma once

#include <string>

namespace scaletrain::core {

// Bytes that are not UTF-8, which names of files and hosts may have, are replaced. On one line, or
// with `indent` blanks for each level.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace scaletrain::core
