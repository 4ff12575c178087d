// Findings of `recipe lint` as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lib/recipe/lint/lint.h"

namespace scaletrain::launcher {

// Returns three lines for each finding, and the number of findings in the last line.
std::string lint_text(const std::string& recipe, const std::vector<recipe::LintFinding>& findings);

// Returns {"recipe", "findings": [{"rule", "place", "found", "why", "remedy"}]}.
nlohmann::ordered_json lint_json(const std::string& recipe,
                                 const std::vector<recipe::LintFinding>& findings);

}  // namespace scaletrain::launcher
