// `recipe new`: writes a recipe for the user's training data.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds `new` to `scaletrain recipe`.
void add_recipe_new(CLI::App& recipe, int& exit_status);

}  // namespace scaletrain::launcher
