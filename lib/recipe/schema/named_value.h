// A value of an enumeration with its help text.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace scaletrain::recipe {

// Converts from a plain name, so that {"a", "b"} lists values without help.
struct NamedValue {
  NamedValue(const char* value_name, const char* value_help = "")
      : name(value_name), help(value_help) {}
  NamedValue(std::string value_name, std::string value_help = "")
      : name(std::move(value_name)), help(std::move(value_help)) {}

  std::string name;
  std::string help;  // one sentence; "": none

  bool operator==(const NamedValue&) const = default;
};

using NamedValues = std::vector<NamedValue>;

// Returns the names in order.
inline std::vector<std::string> names_of(const NamedValues& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const NamedValue& value : values) names.push_back(value.name);
  return names;
}

}  // namespace scaletrain::recipe
