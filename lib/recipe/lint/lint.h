// Advice about a valid recipe: settings that are unusual and often a mistake.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/lint/rules.h"
#include "lib/recipe/lint/subject.h"

namespace scaletrain::recipe {

struct LintFinding {
  std::string rule, place, found, why, remedy;
};

// Returns the findings in the order of lint_rules(), at most one of each rule. Throws
// core::RecipeError if the batch does not fit the ranks.
std::vector<LintFinding> lint(const Recipe& recipe, const LintFacts& facts = {});

// Returns all rules.
std::vector<LintRule> lint_rules();

}  // namespace scaletrain::recipe
