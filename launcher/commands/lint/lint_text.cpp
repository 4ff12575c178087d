#include "launcher/commands/lint/lint_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/core/printable.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {

std::string lint_text(const std::string& recipe, const std::vector<recipe::LintFinding>& findings) {
  if (findings.empty()) return fmt::format("{}: nothing unusual\n", core::printable(recipe));
  std::string text;
  for (const recipe::LintFinding& one : findings) {
    text += fmt::format("{}: {}: {}\n  why: {}\n  do: {}\n", one.rule, one.place,
                        core::printable(one.found), one.why, one.remedy);
  }
  return text + fmt::format("{}: {}\n", core::printable(recipe),
                            core::counted(static_cast<int>(findings.size()), "finding"));
}

nlohmann::ordered_json lint_json(const std::string& recipe,
                                 const std::vector<recipe::LintFinding>& findings) {
  nlohmann::ordered_json json{{"recipe", recipe}, {"findings", nlohmann::ordered_json::array()}};
  for (const recipe::LintFinding& one : findings) {
    json["findings"].push_back({{"rule", one.rule},
                                {"place", one.place},
                                {"found", one.found},
                                {"why", one.why},
                                {"remedy", one.remedy}});
  }
  return json;
}

}  // namespace scaletrain::launcher
