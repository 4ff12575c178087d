// `recipe lint`: advice about unusual settings of a valid recipe.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds `lint` to `scaletrain recipe`.
void add_recipe_lint(CLI::App& recipe, int& exit_status);

}  // namespace scaletrain::launcher
