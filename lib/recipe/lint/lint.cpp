#include "lib/recipe/lint/lint.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/recipe/load.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {
namespace {

using LintJson = nlohmann::ordered_json;

bool has_sections(const LintJson& recipe, const std::vector<std::string_view>& sections) {
  return std::ranges::all_of(sections, [&](std::string_view section) {
    const LintJson::json_pointer pointer{std::string(section)};
    return recipe.contains(pointer) && !recipe.at(pointer).is_null();
  });
}

}  // namespace

std::vector<LintRule> lint_rules() {
  std::vector<LintRule> result;
  for (const auto* group :
       {&optimizer_lint_rules(), &length_lint_rules(), &data_lint_rules(), &device_lint_rules()}) {
    result.insert(result.end(), group->begin(), group->end());
  }
  return result;
}

std::vector<LintFinding> lint(const Recipe& recipe, const LintFacts& facts) {
  const LintSubject subject = lint_subject(recipe, facts);
  const LintJson json = LintJson::parse(to_json(recipe));
  std::vector<LintFinding> findings;
  for (const LintRule& rule : lint_rules()) {
    if (!has_sections(json, rule.sections)) continue;
    std::optional<LintAdvice> advice = rule.find(subject);
    if (!advice) continue;
    findings.push_back({.rule = std::string(rule.name),
                        .place = std::move(advice->place),
                        .found = std::move(advice->found),
                        .why = std::string(rule.why),
                        .remedy = std::move(advice->remedy)});
  }
  return findings;
}

}  // namespace scaletrain::recipe
