// `recipe new`: writes a recipe for the user's training data.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

// Adds `new` to `scaletrain recipe`.
void add_recipe_new(CLI::App& recipe, int& exit_status);

}  // namespace scaletrain::launcher
