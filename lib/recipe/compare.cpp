// Compares two recipes.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/recipe/describe.h"
#include "lib/recipe/load.h"

namespace scaletrain::recipe {
namespace {

void collect(const Json& a, const Json& b, const std::string& pointer,
             std::vector<std::string>& result) {
  if (!a.is_object() || !b.is_object()) {
    if (a != b) result.push_back(pointer);
    return;
  }
  for (const auto& [key, value] : a.items()) {
    const auto other = b.find(key);
    collect(value, other == b.end() ? Json() : *other, child_pointer(pointer, key), result);
  }
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) result.push_back(child_pointer(pointer, key));
  }
}

}  // namespace

std::vector<std::string> differing_keys(const Recipe& a, const Recipe& b) {
  Recipe first = a;
  Recipe second = b;
  std::vector<std::string> result;
  collect(describe(first)->write(), describe(second)->write(), "", result);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace scaletrain::recipe
