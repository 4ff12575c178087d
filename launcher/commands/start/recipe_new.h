// `recipe new`: a recipe for the training data of a person.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// Adds `new` to `scaletrain recipe`.
void add_recipe_new(CLI::App& recipe, int& exit_status);

}  // namespace scaletrain::launcher
