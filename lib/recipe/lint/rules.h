// The lint rules, in groups by subject: a rule is one row.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/recipe/lint/subject.h"

namespace scaletrain::recipe {

struct LintAdvice {
  std::string place;   // JSON pointer
  std::string found;   // with its values
  std::string remedy;  // what to do
};

struct LintRule {
  std::string_view name;
  std::vector<std::string_view>
      sections;          // JSON pointers: the rule needs all of them in the recipe
  std::string_view why;  // why it matters
  std::optional<LintAdvice> (*find)(const LintSubject& subject);  // nullopt: nothing unusual
};

const std::vector<LintRule>& optimizer_lint_rules();
const std::vector<LintRule>& length_lint_rules();
const std::vector<LintRule>& data_lint_rules();
const std::vector<LintRule>& device_lint_rules();

}  // namespace scaletrain::recipe
