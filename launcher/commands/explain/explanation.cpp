#include "launcher/commands/explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

constexpr std::size_t kWidestValue = 60;

std::string shown_value(const std::string& value) {
  const std::string text = value.empty() ? "-" : core::printable(value);
  return text.size() <= kWidestValue ? text : text.substr(0, kWidestValue - 3) + "...";
}

std::string table(const std::string& title, const std::vector<Explained>& rows) {
  if (rows.empty()) return "";
  std::size_t name_width = 0, value_width = 0;
  for (const Explained& row : rows) {
    name_width = std::max(name_width, row.name.size());
    value_width = std::max(value_width, shown_value(row.value).size());
  }
  std::string text = fmt::format("{}\n", title);
  for (const Explained& row : rows) {
    text += fmt::format("  {:{}}  {:{}}  {}\n", row.name, name_width, shown_value(row.value),
                        value_width, core::printable(row.from));
  }
  return text;
}

nlohmann::ordered_json rows_as_json(const std::vector<Explained>& rows) {
  auto result = nlohmann::ordered_json::array();
  for (const Explained& row : rows) {
    result.push_back({{"name", row.name}, {"value", row.value}, {"from", row.from}});
  }
  return result;
}

}  // namespace

std::string to_text(const Explanation& explanation) {
  std::string text = table(explanation.title, explanation.launch);
  text += table("runs", explanation.runs) + table("recipe", explanation.recipe);
  text += table("mesh, outermost axis first", explanation.mesh);
  text += table("memory of a rank", explanation.memory);
  text += table("what a rank exchanges in a step", explanation.traffic);
  text += table("variables of the first worker here", explanation.worker);
  for (const std::string& note : explanation.notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string to_json(const Explanation& explanation) {
  nlohmann::ordered_json json{{explanation.title, rows_as_json(explanation.launch)},
                              {"recipe", rows_as_json(explanation.recipe)}};
  if (explanation.worker.empty()) {
    json["runs"] = rows_as_json(explanation.runs);
  } else {
    json["worker"] = rows_as_json(explanation.worker);
  }
  if (!explanation.mesh.empty()) {
    json["mesh"] = rows_as_json(explanation.mesh);
    json["memory"] = rows_as_json(explanation.memory);
    json["traffic"] = rows_as_json(explanation.traffic);
  }
  json["notes"] = explanation.notes;
  return core::json_text(json, 2) + "\n";
}

}  // namespace scaletrain::launcher
