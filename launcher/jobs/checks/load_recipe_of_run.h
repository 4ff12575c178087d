// Loads a recipe file for the commands that train.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

// Loads the recipe and completes values that its weights and data determine
// (launcher/jobs/checks/known_values.h). Throws the errors of both.
recipe::Recipe load_recipe_of_run(const std::string& path,
                                  const std::vector<std::string>& overrides);

// Compares a recipe with the local weights that it starts from (lib/exchange/compare_weights.h).
// Returns the warning, "" if nothing differs.
std::string weights_warning_of(const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
