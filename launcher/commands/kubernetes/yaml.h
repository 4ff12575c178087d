// Converts a JSON value to readable YAML.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace scaletrain::launcher {

// Returns block-style YAML that ends with a newline. A string that a YAML reader could take for
// another type is in double quotes, with unprintable characters escaped. `value` is an object whose
// arrays and objects are not empty; its strings are UTF-8.
std::string to_yaml(const nlohmann::ordered_json& value);

}  // namespace scaletrain::launcher
