#include "launcher/commands/explain/recipe_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

using RecipeJson = nlohmann::ordered_json;

// Returns the origin of the value at `pointer`. A text may be short for an object ("resnet18" for
// {"name": "resnet18"}, "cosine" for {"decay": {"name": "cosine"}}): then it wrote only that key.
std::string origin_of(std::string pointer, const std::map<std::string, std::string>& origins) {
  while (true) {
    const auto found = origins.find(pointer);
    if (found != origins.end()) return found->second;
    const std::size_t slash = pointer.rfind('/');
    const std::string key = slash == std::string::npos ? "" : pointer.substr(slash + 1);
    if (key != "name" && key != "decay" && key != "policy") return "default";
    pointer.resize(slash);
  }
}

void add_recipe_rows(const RecipeJson& value, const std::string& pointer,
                     const std::map<std::string, std::string>& origins,
                     std::vector<Explained>& rows) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [name, member] : value.items()) {
      add_recipe_rows(member, fmt::format("{}/{}", pointer, name), origins, rows);
    }
    return;
  }
  std::string name = pointer.substr(1);
  std::replace(name.begin(), name.end(), '/', '.');
  rows.push_back({.name = std::move(name),
                  .value = value.is_string() ? value.get<std::string>() : value.dump(),
                  .from = origin_of(pointer, origins)});
}

}  // namespace

std::vector<Explained> recipe_rows(const std::string& resolved,
                                   const std::map<std::string, std::string>& origins) {
  std::vector<Explained> rows;
  add_recipe_rows(RecipeJson::parse(resolved), "", origins, rows);
  return rows;
}

}  // namespace scaletrain::launcher
