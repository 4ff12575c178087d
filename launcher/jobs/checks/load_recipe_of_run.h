// A recipe file as the commands that train by it read it.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

// recipe::load_recipe, with what the recipe leaves open and its weights and data say
// (launcher/jobs/checks/known_values.h). Throws as both do.
recipe::Recipe load_recipe_of_run(const std::string& path,
                                  const std::vector<std::string>& overrides);

// Compares a recipe that starts from weights of this machine with what they say
// (lib/exchange/compare_weights.h). Returns the warning, "" where nothing differs.
std::string weights_warning_of(const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
