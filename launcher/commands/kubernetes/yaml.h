// A JSON value as YAML for people to read and edit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace scaletrain::launcher {

// Block style, ends with a newline. A string that any YAML reader could take for something else is
// in double quotes, with every character escaped that is not printable. `value` is an object whose
// arrays and objects are not empty; its strings are UTF-8.
std::string to_yaml(const nlohmann::ordered_json& value);

}  // namespace scaletrain::launcher
