#include "launcher/commands/doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

const char* state_name(Finding::State state) {
  switch (state) {
    case Finding::State::kOk:
      return "ok";
    case Finding::State::kWarning:
      return "warning";
    case Finding::State::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace

Finding well(std::string name, std::string found) {
  return {Finding::State::kOk, std::move(name), std::move(found)};
}

Finding warning(std::string name, std::string found, std::string remedy) {
  return {Finding::State::kWarning, std::move(name), std::move(found), std::move(remedy)};
}

Finding failure(std::string name, std::string found, std::string remedy) {
  return {Finding::State::kFailed, std::move(name), std::move(found), std::move(remedy)};
}

bool any_failed(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.state == Finding::State::kFailed;
  });
}

std::string to_text(const Findings& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.name.size());
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:8} {:{}}  {}\n", state_name(finding.state), finding.name, width,
                        core::printable(finding.found));
    if (!finding.remedy.empty()) {
      text += fmt::format("{:8} {:{}}  -> {}\n", "", "", width, core::printable(finding.remedy));
    }
  }
  return text;
}

std::string to_json(const Findings& findings) {
  auto list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"state", state_name(finding.state)},
                    {"found", finding.found},
                    {"remedy", finding.remedy}});
  }
  const nlohmann::ordered_json json{{"ok", !any_failed(findings)}, {"findings", list}};
  return core::json_text(json, 2) + "\n";
}

}  // namespace scaletrain::launcher
